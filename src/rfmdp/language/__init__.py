"""The PRISM language: models and properties as text, their trees, and their static checks."""
