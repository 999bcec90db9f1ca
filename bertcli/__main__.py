"""`python -m bertcli`"""

from bertcli.cli import main

if __name__ == "__main__":
    main()
