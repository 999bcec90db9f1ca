"""`python -m bertcli`"""

from bertcli.cli import main

main()
