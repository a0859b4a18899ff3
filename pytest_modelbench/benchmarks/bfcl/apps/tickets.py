"""Support tickets of a company."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pytest_modelbench.benchmarks.bfcl.apps.app import App, Refusal, State


class Tickets(App):
    """Tickets, each with an id that is counted."""

    defaults: ClassVar[Mapping[str, Any]] = {  # Any: JSON, as in `State`
        "ticket_queue": [],
        "ticket_counter": 1,
        "current_user": None,
    }

    def create_ticket(self, title: str, description: str = "", priority: int = 1) -> object:
        """Open a ticket."""
        user = self._user("create a ticket")
        if not 1 <= priority <= 5:
            raise Refusal("A priority is from 1 to 5.")
        ticket = {
            "id": self.state["ticket_counter"],
            "title": title,
            "description": description,
            "status": "Open",
            "priority": priority,
            "created_by": user,
        }
        self.state["ticket_queue"].append(ticket)
        self.state["ticket_counter"] += 1
        return ticket

    def get_ticket(self, ticket_id: int) -> object:
        """Return a ticket."""
        return self._ticket(ticket_id)

    def close_ticket(self, ticket_id: int) -> object:
        """Close a ticket."""
        return self._move(ticket_id, "Closed")

    def resolve_ticket(self, ticket_id: int, resolution: str) -> object:
        """Resolve a ticket."""
        return self._move(ticket_id, "Resolved", resolution=resolution)

    def edit_ticket(self, ticket_id: int, updates: Mapping[str, object]) -> object:
        """Change fields of a ticket."""
        ticket = self._ticket(ticket_id)
        wrong = sorted(set(updates) - {"title", "description", "status", "priority"})
        if wrong:
            raise Refusal(f"These fields cannot be changed: {', '.join(wrong)}")
        ticket.update({name: value for name, value in updates.items() if value is not None})
        return {"status": f"Ticket {ticket_id} has been updated successfully."}

    def ticket_login(self, username: str, password: str) -> object:
        """Log in: any name and password will do."""
        if not (username and password):
            return {"success": False}
        self.state["current_user"] = username
        return {"success": True}

    def ticket_get_login_status(self) -> object:
        """Tell whether somebody is logged in."""
        return {"login_status": bool(self.state["current_user"])}

    def logout(self) -> object:
        """Log out."""
        there = bool(self.state["current_user"])
        if there:
            self.state["current_user"] = None
        return {"success": there}

    def get_user_tickets(self, status: str | None = None) -> object:
        """Return the user's own tickets, of one status or all."""
        if not self.state["current_user"]:
            return [{"error": "Log in to view tickets."}]
        mine = [
            t for t in self.state["ticket_queue"] if t["created_by"] == self.state["current_user"]
        ]
        return [t for t in mine if not status or t["status"].lower() == status.lower()]

    def _user(self, what: str) -> str:
        user = self.state["current_user"]
        if not user:
            raise Refusal(f"Nobody is authenticated. Log in to {what}.")
        return str(user)

    def _ticket(self, ticket_id: int) -> State:
        for ticket in self.state["ticket_queue"]:
            if ticket["id"] == ticket_id:
                found: State = ticket
                return found
        raise Refusal(f"There is no ticket {ticket_id}.")

    def _move(self, ticket_id: int, status: str, **more: str) -> object:
        ticket = self._ticket(ticket_id)
        if ticket["status"] == status:
            raise Refusal(f"Ticket {ticket_id} is {status.lower()} already.")
        ticket.update(status=status, **more)
        return {"status": f"Ticket {ticket_id} has been {status.lower()} successfully."}
