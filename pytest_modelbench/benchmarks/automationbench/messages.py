"""What can be done with mail and chat."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import JsonValue

from pytest_modelbench.benchmarks.automationbench.reading import (
    fresh_id,
    holding,
    listed,
    now,
    the_record,
)
from pytest_modelbench.benchmarks.jsonworlds.acting import TEXT, Arguments, acting, described
from pytest_modelbench.benchmarks.jsonworlds.assertions import named, texts
from pytest_modelbench.benchmarks.jsonworlds.state import Record, State, collection, records_in
from pytest_modelbench.benchmarks.tools import Tool, ToolRefused

PEOPLE: dict[str, JsonValue] = {
    "type": ["string", "array"],
    "items": TEXT,
    "description": "an address, or a list of them",
}
MESSAGE = described(TEXT, "the id of a message")


def gmail(state: State) -> list[Tool]:
    """Return the actions of mail. What is sent bears the label SENT; nothing is ever received."""

    def mails() -> list[Record]:
        return records_in(state, "gmail", "messages")

    def find(arguments: Arguments) -> str:
        found = holding(mails(), str(arguments.get("query", "")))
        keys = ("id", "thread_id", "from_", "from", "to", "cc", "subject", "date", "label_ids")
        return listed([{key: one[key] for key in keys if key in one} for one in found])

    def read(arguments: Arguments) -> str:
        return json.dumps(the_record(mails(), "message", arguments["message_id"]))

    def send(arguments: Arguments) -> str:
        mail = _mail(state, arguments, ["SENT"])
        collection(state, "gmail", "messages").append(mail)
        return f"Sent as {mail['id']}."

    def reply(arguments: Arguments) -> str:
        old = the_record(mails(), "message", arguments["message_id"])
        sender = old.get("from_", old.get("from", ""))
        said = {"to": sender, "subject": f"Re: {old.get('subject', '')}", **arguments}
        mail = _mail(state, said, ["SENT"])
        mail["thread_id"] = old.get("thread_id", old.get("id"))
        collection(state, "gmail", "messages").append(mail)
        return f"Sent as {mail['id']}."

    def draft(arguments: Arguments) -> str:
        drafts = collection(state, "gmail", "drafts")
        one: Record = {
            "id": fresh_id("draft", records_in(state, "gmail", "drafts")),
            "message": _mail(state, arguments, ["DRAFT"]),
        }
        drafts.append(one)
        return f"Kept as {one['id']}."

    def label(arguments: Arguments) -> str:
        mail = the_record(mails(), "message", arguments["message_id"])
        labels = records_in(state, "gmail", "labels")
        known = sorted(map(str, named(labels, arguments["label"], "name")))
        name = known[0] if known else str(arguments["label"])
        held = mail.get("label_ids")
        others = [one for one in held if one != name] if isinstance(held, list) else []
        mail["label_ids"] = [*others, name]
        return f"{mail['id']} is labelled {name}."

    def unlabel(arguments: Arguments) -> str:
        mail = the_record(mails(), "message", arguments["message_id"])
        labels = records_in(state, "gmail", "labels")
        gone = {*map(str, named(labels, arguments["label"], "name")), str(arguments["label"])}
        held = mail.get("label_ids")
        mail["label_ids"] = [one for one in texts(held) if one not in gone]
        return f"{mail['id']} is no longer labelled {arguments['label']}."

    said = {"to": PEOPLE, "subject": TEXT, "body": TEXT}
    copies = {"cc": PEOPLE, "bcc": PEOPLE}
    return [
        acting("gmail_find_email", "Find mails, received, sent and others, by a text in them.",
               find, None, {"query": described(TEXT, "empty for all")}),
        acting("gmail_get_email", "Read a mail.", read, {"message_id": MESSAGE}),
        acting("gmail_send_email", "Send a mail.", send, said, copies),
        acting("gmail_reply_to_email", "Answer a mail; to its sender, unless others are named.",
               reply, {"message_id": MESSAGE, "body": TEXT}, {"to": PEOPLE, **copies}),
        acting("gmail_create_draft", "Keep a mail as a draft; it is not sent.", draft,
               said, copies),
        acting("gmail_add_label_to_email", "Label a mail.", label,
               {"message_id": MESSAGE, "label": TEXT}),
        acting("gmail_remove_label_from_email", "Take a label off a mail.", unlabel,
               {"message_id": MESSAGE, "label": TEXT}),
    ]  # fmt: skip


def slack(state: State) -> list[Tool]:
    """Return the actions of chat."""

    def channels() -> list[Record]:
        return records_in(state, "slack", "channels")

    def list_channels(arguments: Arguments) -> str:
        return listed(channels())

    def read(arguments: Arguments) -> str:
        wanted = _channel(channels(), arguments["channel"])
        return listed(
            [
                one
                for one in records_in(state, "slack", "messages")
                if one.get("channel_id", one.get("channel")) == wanted
            ]
        )

    def search(arguments: Arguments) -> str:
        return listed(holding(records_in(state, "slack", "messages"), str(arguments["query"])))

    def post(arguments: Arguments) -> str:
        return _say(state, _channel(channels(), arguments["channel"]), arguments)

    def direct(arguments: Arguments) -> str:
        people = records_in(state, "slack", "users")
        found = sorted(map(str, named(people, arguments["user"], "name", "real_name", "email")))
        if people and not found:
            raise ToolRefused(f"there is no user {arguments['user']!r}")
        return _say(state, found[0] if found else str(arguments["user"]), arguments)

    def create(arguments: Arguments) -> str:
        name = str(arguments["name"]).lstrip("#")
        if named(channels(), name, "name"):
            raise ToolRefused(f"there is a channel {name} already")
        one: Record = {"id": fresh_id("C", channels()), "name": name}
        collection(state, "slack", "channels").append(one)
        return f"Made as {one['id']}."

    channel = described(TEXT, "its name or id")
    return [
        acting("slack_list_channels", "List the channels.", list_channels),
        acting("slack_get_channel_messages", "Read a channel.", read, {"channel": channel}),
        acting("slack_find_message", "Find messages by a text in them.", search, {"query": TEXT}),
        acting("slack_send_channel_message", "Post to a channel.", post,
               {"channel": channel, "text": TEXT}),
        acting("slack_send_direct_message", "Write to one person.", direct,
               {"user": TEXT, "text": TEXT}),
        acting("slack_create_channel", "Make a channel.", create, {"name": TEXT}),
    ]  # fmt: skip


def _mail(state: State, said: Arguments, labels: list[str]) -> Record:
    return {
        "id": fresh_id("msg", records_in(state, "gmail", "messages")),
        **{key: _people(said[key]) for key in ("to", "cc", "bcc") if key in said},
        "subject": said["subject"],
        "body_plain": said["body"],
        "date": now(state),
        "label_ids": [*labels],
    }


def _people(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [str(one).strip() for one in value]
    return [one.strip() for one in str(value).split(",") if one.strip()]


def _channel(channels: list[Record], wanted: JsonValue) -> str:
    found = sorted(map(str, named(channels, wanted, "name")))
    if not found:
        known = ", ".join(str(one.get("name")) for one in channels)
        raise ToolRefused(f"there is no channel {wanted!r}; there are: {known or 'none'}")
    return found[0]


def _say(state: State, channel: str, said: Mapping[str, JsonValue]) -> str:
    one: Record = {
        "id": fresh_id("chat", records_in(state, "slack", "messages")),
        "channel_id": channel,
        "text": said["text"],
        "ts": now(state),
    }
    collection(state, "slack", "messages").append(one)
    return f"Said as {one['id']}."
