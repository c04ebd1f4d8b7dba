"""Files: saved models and results, explicit files of PRISM and Storm, stormpy in memory."""
