"""Messages between the people of a workspace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pytest_modelbench.benchmarks.bfcl.apps.app import App, Refusal

PEOPLE = {"Alice": "USR001", "Bob": "USR002", "Catherine": "USR003", "Daniel": "USR004"}


class Messages(App):
    """Each message is one receiver and one text."""

    seed = 200191
    defaults: ClassVar[Mapping[str, Any]] = {  # Any: JSON, as in `State`
        "generated_ids": [],
        "user_count": 4,
        "user_map": PEOPLE,
        "inbox": [
            {"USR002": "My name is Alice. I want to connect."},
            {"USR003": "Could you upload the file?"},
            {"USR004": "Could you upload the file?"},
        ],
        "message_count": 3,
        "current_user": None,
    }

    def list_users(self) -> object:
        """Return the names."""
        return {"user_list": list(self.state["user_map"])}

    def get_user_id(self, user: str) -> object:
        """Return the id of a name."""
        if user not in self.state["user_map"]:
            raise Refusal(f"There is no user {user!r} in the workspace.")
        return {"user_id": self.state["user_map"][user]}

    def message_login(self, user_id: str) -> object:
        """Log in by an id."""
        if user_id not in self.state["user_map"].values():
            return {"login_status": False, "message": f"User ID '{user_id}' not found."}
        self.state["current_user"] = user_id
        return {"login_status": True, "message": f"User '{user_id}' logged in successfully."}

    def message_get_login_status(self) -> object:
        """Tell whether somebody is logged in."""
        return {"login_status": bool(self.state["current_user"])}

    def send_message(self, receiver_id: str, message: str) -> object:
        """Send a text to somebody."""
        self._must_be_in()
        if receiver_id not in self.state["user_map"].values():
            raise Refusal(f"There is no receiver {receiver_id!r}.")
        number = self.random.randint(10000, 99999)
        while number in self.state["generated_ids"]:
            number = self.random.randint(10000, 99999)
        self.state["generated_ids"].append(number)
        self.state["inbox"].append({receiver_id: message})
        self.state["message_count"] += 1
        return {
            "sent_status": True,
            "message_id": {"new_id": number},
            "message": f"Message sent to '{receiver_id}' successfully.",
        }

    def delete_message(self, receiver_id: str) -> object:
        """Delete the newest message to somebody."""
        self._must_be_in()
        sent = [message for message in self.state["inbox"] if next(iter(message)) == receiver_id]
        if not sent:
            raise Refusal(f"There is no receiver {receiver_id}.")
        self.state["inbox"].remove(sent[-1])
        told = f"Receiver {receiver_id}'s latest message deleted successfully."
        return {"deleted_status": True, "receiver_id": receiver_id, "message": told}

    def view_messages_sent(self) -> object:
        """Return the messages by receiver."""
        self._must_be_in()
        found: dict[str, list[str]] = {}
        for receiver, text in self._all():
            found.setdefault(receiver, []).append(text)
        return {"messages": found}

    def add_contact(self, user_name: str) -> object:
        """Add a person, under the next id."""
        people = self.state["user_map"]
        if user_name in people:
            raise Refusal(f"There is a user {user_name!r} already.")
        self.state["user_count"] += 1
        user_id = f"USR{self.state['user_count']:03}"
        if user_id in people.values():
            raise Refusal(f"There is a user ID {user_id!r} already.")
        people[user_name] = user_id
        told = f"Contact '{user_name}' added successfully."
        return {"added_status": True, "user_id": user_id, "message": told}

    def search_messages(self, keyword: str) -> object:
        """Return the messages that hold a word."""
        self._must_be_in()
        found = [
            {"receiver_id": receiver, "message": text}
            for receiver, text in self._all()
            if keyword.lower() in text.lower()
        ]
        return {"results": found}

    def get_message_stats(self) -> object:
        """Count messages and receivers."""
        self._must_be_in()
        receivers = [receiver for receiver, _ in self._all()]
        return {"stats": {"received_count": len(receivers), "total_contacts": len(set(receivers))}}

    def _must_be_in(self) -> None:
        if not self.state["current_user"]:
            raise Refusal("Nobody is logged in.")

    def _all(self) -> Iterator[tuple[str, str]]:
        for message in self.state["inbox"]:
            yield next(iter(message.items()))
