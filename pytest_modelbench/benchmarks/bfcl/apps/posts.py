"""Short posts of people who follow each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pytest_modelbench.benchmarks.bfcl.apps.app import App, Refusal, State


class Posts(App):
    """Posts by number; comments and reposts beside them."""

    defaults: ClassVar[Mapping[str, Any]] = {  # Any: JSON, as in `State`
        "username": "john",
        "password": "john123",
        "authenticated": False,
        "tweets": {},
        "comments": {},
        "retweets": {},
        "following_list": ["alice", "bob"],
        "tweet_counter": 0,
    }

    def __init__(self, scenario: Mapping[str, Any]) -> None:  # Any: JSON, as in `State`
        """Begin as a scenario says; numbers that JSON made texts are numbers again."""
        super().__init__(scenario)
        self.state["tweets"] = {int(key): post for key, post in self.state["tweets"].items()}

    def authenticate_twitter(self, username: str, password: str) -> object:
        """Log in."""
        right = (username, password) == (self.state["username"], self.state["password"])
        if right:
            self.state["authenticated"] = True
        return {"authentication_status": right}

    def posting_get_login_status(self) -> object:
        """Tell whether somebody is logged in."""
        return {"login_status": bool(self.state["authenticated"])}

    def post_tweet(
        self, content: str, tags: Sequence[str] = (), mentions: Sequence[str] = ()
    ) -> object:
        """Post a text."""
        self._must_be_in("post")
        number = self.state["tweet_counter"]
        self.state["tweets"][number] = {
            "id": number,
            "username": self.state["username"],
            "content": content,
            "tags": list(tags),
            "mentions": list(mentions),
        }
        self.state["tweet_counter"] += 1
        return self.state["tweets"][number]

    def retweet(self, tweet_id: int) -> object:
        """Post another's post again, once."""
        self._must_be_in("retweet")
        self._post(tweet_id)
        mine = self.state["retweets"].setdefault(self.state["username"], [])
        if tweet_id in mine:
            return {"retweet_status": "Already retweeted"}
        mine.append(tweet_id)
        return {"retweet_status": "Successfully retweeted"}

    def comment(self, tweet_id: int, comment_content: str) -> object:
        """Comment on a post."""
        self._must_be_in("comment")
        self._post(tweet_id)
        comment = {"username": self.state["username"], "content": comment_content}
        self.state["comments"].setdefault(tweet_id, []).append(comment)
        return {"comment_status": "Comment added successfully"}

    def mention(self, tweet_id: int, mentioned_usernames: Sequence[str]) -> object:
        """Mention people in a post."""
        self._post(tweet_id)["mentions"].extend(mentioned_usernames)
        return {"mention_status": "Users mentioned successfully"}

    def follow_user(self, username_to_follow: str) -> object:
        """Follow somebody."""
        self._must_be_in("follow")
        new = username_to_follow not in self.state["following_list"]
        if new:
            self.state["following_list"].append(username_to_follow)
        return {"follow_status": new}

    def list_all_following(self) -> object:
        """Return who is followed."""
        self._must_be_in("list whom you follow")
        return {"following_list": self.state["following_list"]}

    def unfollow_user(self, username_to_unfollow: str) -> object:
        """Follow somebody no more."""
        self._must_be_in("unfollow")
        there = username_to_unfollow in self.state["following_list"]
        if there:
            self.state["following_list"].remove(username_to_unfollow)
        return {"unfollow_status": there}

    def get_tweet(self, tweet_id: int) -> object:
        """Return a post."""
        return self._post(tweet_id)

    def get_user_tweets(self, username: str) -> object:
        """Return somebody's posts."""
        return self._of(username)

    def search_tweets(self, keyword: str) -> object:
        """Return posts that hold a word, or are tagged with it."""
        word = keyword.lower()
        return [
            post
            for post in self.state["tweets"].values()
            if word in post["content"].lower() or word in [tag.lower() for tag in post["tags"]]
        ]

    def get_tweet_comments(self, tweet_id: int) -> object:
        """Return the comments on a post."""
        self._post(tweet_id)
        return self.state["comments"].get(tweet_id, [])

    def get_user_stats(self, username: str) -> object:
        """Count what somebody did."""
        mine = username == self.state["username"]
        return {
            "tweet_count": len(self._of(username)),
            "following_count": len(self.state["following_list"]) if mine else 0,
            "retweet_count": len(self.state["retweets"].get(username, [])),
        }

    def _must_be_in(self, what: str) -> None:
        if not self.state["authenticated"]:
            raise Refusal(f"Nobody is authenticated. Log in to {what}.")

    def _post(self, number: int) -> State:
        if number not in self.state["tweets"]:
            raise Refusal(f"There is no tweet {number}.")
        found: State = self.state["tweets"][number]
        return found

    def _of(self, username: str) -> list[State]:
        return [post for post in self.state["tweets"].values() if post["username"] == username]
