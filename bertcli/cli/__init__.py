"""The command line. Only this file, process.py and status.py are imported before Ctrl-C and closed pipes are heeded.

app            which commands there are, made of what is declared; **in which group of `--help` a command stands**
command        the function of a command, made of its groups of options, as Typer takes it; **how a word becomes a
               value**
doctor         the command doctor: its options and its lines
errors         notes, warnings and errors on standard error
guide          `bertcli guide`: print the manual, Markdown files in `bertcli/guide/` and in the folders of wings; **in
               which order topics are listed**
help           the help pages: whole (`--help`) and short (`-h`), as plain text; **which options `-h` shows**
info           the command info: its lines
inputs         what commands read: the groups of options for it, and the texts that they name, opened; **what an
               argument, a column or `--keep` means to each command**
installed      the plugins that info and doctor list
misunderstood  what is said of words that are not understood: a model as an argument, options that there are not; **is a
               word a model**
model          the model of a command, opened; **which model is noted as not trained for this**
neighbors      the command neighbors
options        the groups of options that several commands share (model, input, work), declared as tasks declare theirs;
               **which model is taken if none is given**
other_tools    names that other tools have for options, each with what to write here
output         where a result goes, in every command; **what is refused of an output before any work**
params         the command params, and what trace shares with it: the model they analyze, which need not have weights
plugin         `bertcli plugin`: write a package to begin with; **which names it may have**
process        signals and closed streams around a command
reading        what the command of each kind of task reads: its groups of options, how its texts are opened; **which
               columns are question and context, query and document**
request        the request of a task's command, made of its options; **that files are read to their ends before any
               work; which options contradict each other**
results        what comes of a request, printed or written; what must be equal for --resume
rewritten      files that are written again with other texts: when, and what is said (tag --redact)
similarity     bertcli similarity: how much texts are alike
status         the exit statuses of commands, and **which of them an error has; of two errors, which counts**
tasks          the command of a task, made from its spec (`tasks/`)
tokenize       the command tokenize: a row for each token
trace          the command trace: its options, and which of table, record, page and arrays is written
vectors        vectors in files: the option --dtype of encode, what files of arrays can hold, and in which form; **which
               form of vectors fits the file**
"""

import gc
import sys

from bertcli.cli.process import asked_to_end, heed_signals, leave_streams, open_closed_streams
from bertcli.cli.status import status_of
from bertcli.engine.blas import choose_short_waits

COLLECT_AFTER = 50_000  # new objects; with Python's 700 a tenth of a short command's time went into its 60 collections


def main() -> None:
    """Run `bertcli` with the arguments of this process, and exit."""
    open_closed_streams()
    heed_signals()
    choose_short_waits()
    gc.set_threshold(COLLECT_AFTER)
    try:
        from bertcli.cli.app import application
        from bertcli.report.terminal import take_any_text

        take_any_text()
        try:
            application(*sys.argv[1:2])(prog_name="bertcli")
        finally:
            sys.stdout.flush()
            gc.freeze()  # the process ends: nothing is searched for garbage any more
    except BaseException as error:
        if asked_to_end() is None and not isinstance(error, (KeyboardInterrupt, OSError, SystemExit)):
            raise
        leave_streams()
        status = status_of(error)
        if status:
            status = asked_to_end() or status  # a run that succeeded despite the signal ends with 0
        sys.exit(status)
