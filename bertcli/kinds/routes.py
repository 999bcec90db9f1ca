"""`Routes`: which way a text goes through a model by the name of its prompt; with a Router queries may have their own.

The settings of a kind are those of the route for documents. Which routes a folder has is read in folder/router.py.
"""

from dataclasses import dataclass

from bertcli.folder.files import Folder
from bertcli.folder.layout import Layout
from bertcli.folder.prompts import Role


class Routes:
    """One way for all texts: that of a model without a Router."""

    # For the user, after how the vectors of documents are made.
    summary = ""

    def name_for(self, role: Role) -> str | None:
        """The name of the route that texts of a role take, whatever prompts there are; None if it is the only one."""
        return None

    def refusal_of_vector(self, model: str, prompt_name: str | None) -> str | None:
        """Say why a model of this name gives texts with this prompt no dense vector; None if it may."""
        return None

    def table(self, prompt_name: str | None) -> Folder | None:
        """The folder of the table that has the weights of a text's pieces; None if the network computes them."""
        return None


ONE_ROUTE = Routes()


@dataclass(frozen=True)
class Router(Routes):
    """A Router's routes, of which those other than the documents' are tables of weights, or are not used here."""

    layout: Layout
    summary = "; the route for documents"

    def name_for(self, role: Role) -> str | None:
        return "query" if role == "query" else None

    def refusal_of_vector(self, model: str, prompt_name: str | None) -> str | None:
        if prompt_name != "query":
            return None
        return (
            f"{model} encodes queries by a route of their own, which gives no dense vectors: leave out prompt_name "
            "(--prompt-name) to encode documents."
        )

    def table(self, prompt_name: str | None) -> Folder | None:
        return None if prompt_name is None else self.layout.query_tables.get(prompt_name)
