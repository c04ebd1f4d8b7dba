"""`python -m rfmdp` is `rfmdp`."""

from rfmdp.cli.main import main

if __name__ == "__main__":
    main()
