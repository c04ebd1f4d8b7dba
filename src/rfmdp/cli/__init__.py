"""The command line: argv to the public API to an exit code; one small module per command."""
