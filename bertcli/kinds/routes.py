"""`Routes`: which way a text goes through a model by the name of its prompt; with a Router queries may have their own.

The settings of a kind are those of one route. A route with a network of its own is a model of its own, which
`LoadedModel.for_prompt` opens. Which routes a folder has is read in folder/router.py.
"""

from dataclasses import dataclass

from bertcli.folder.files import Folder
from bertcli.folder.layout import Layout
from bertcli.folder.prompts import Role


class Routes:
    """One way for all texts: that of a model without a Router."""

    @property
    def summary(self) -> str:
        """Say for the user, after how vectors are made, which route these texts take."""
        return ""

    @property
    def has_query_network(self) -> bool:
        """True if queries have a network of their own."""
        return False

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
    """A Router's routes: those other than the documents' have a network, or are tables of weights."""

    layout: Layout

    @property
    def summary(self) -> str:
        return f"; the route for {'queries' if self.layout.folder.route == 'query' else 'documents'}"

    @property
    def has_query_network(self) -> bool:
        return "query" in self.layout.network_routes

    def name_for(self, role: Role) -> str | None:
        return "query" if role == "query" else None

    def refusal_of_vector(self, model: str, prompt_name: str | None) -> str | None:
        if prompt_name != "query" or self.has_query_network:
            return None
        if self.table(prompt_name) is None:
            why = "has no route for queries that bertcli runs"
        else:
            why = "has a table of sparse weights for queries, which gives no dense vectors"
        return f"{model} {why}: leave out prompt_name (--prompt-name) to encode documents."

    def table(self, prompt_name: str | None) -> Folder | None:
        return None if prompt_name is None else self.layout.query_tables.get(prompt_name)
