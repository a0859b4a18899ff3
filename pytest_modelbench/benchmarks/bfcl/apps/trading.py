"""Stocks, orders and an account."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from pytest_modelbench.benchmarks.bfcl.apps.app import App, Refusal

NOW = datetime(2024, 9, 1, 10, 30)
DAY_SECONDS = 86_400
_FORM = "%Y-%m-%d %H:%M:%S"

NAMES = {
    "Apple": "AAPL",
    "Google": "GOOG",
    "Tesla": "TSLA",
    "Microsoft": "MSFT",
    "Nvidia": "NVDA",
    "Zeta Corp": "ZETA",
    "Alpha Tech": "ALPH",
    "Omega Industries": "OMEG",
    "Quasar Ltd.": "QUAS",
    "Neptune Systems": "NEPT",
    "Synex Solutions": "SYNX",
    "Amazon": "AMZN",
    "Gorilla": "GORI",
}
SECTORS = {"Technology": ["AAPL", "GOOG", "MSFT", "NVDA"], "Automobile": ["TSLA", "F", "GM"]}
_FIGURES = ("price", "percent_change", "volume", "MA(5)", "MA(20)")
STOCKS = {
    symbol: dict(zip(_FIGURES, figures, strict=True))
    for symbol, figures in {
        "AAPL": (227.16, 0.17, 2.552, 227.11, 227.09),
        "GOOG": (2840.34, 0.24, 1.123, 2835.67, 2842.15),
        "TSLA": (667.92, -0.12, 1.654, 671.15, 668.2),
        "MSFT": (310.23, 0.09, 3.234, 309.88, 310.11),
        "NVDA": (220.34, 0.34, 1.234, 220.45, 220.67),
        "ALPH": (1320.45, -0.08, 1.567, 1321.12, 1325.78),
        "OMEG": (457.23, 0.12, 2.345, 456.78, 458.12),
        "QUAS": (725.89, -0.03, 1.789, 726.45, 728.0),
        "NEPT": (88.34, 0.19, 0.654, 88.21, 88.67),
        "SYNX": (345.67, 0.11, 2.112, 345.34, 346.12),
        "ZETA": (22.09, -0.05, 0.789, 22.12, 22.34),
    }.items()
}


def _order(number: int, kind: str, symbol: str, price: float, amount: int, status: str) -> object:
    return {
        "id": number,
        "order_type": kind,
        "symbol": symbol,
        "price": price,
        "amount": amount,
        "status": status,
    }


class Trading(App):
    """Orders by number; an order is never filled."""

    seed = 1053520
    defaults: ClassVar[Mapping[str, Any]] = {  # Any: JSON, as in `State`
        "orders": {
            12345: _order(12345, "Buy", "AAPL", 210.65, 10, "Completed"),
            12446: _order(12446, "Sell", "GOOG", 2840.56, 5, "Pending"),
        },
        "account_info": {
            "account_id": 12345,
            "balance": 10000.0,
            "binding_card": 1974202140965533,
        },
        "authenticated": False,
        "market_status": "Closed",
        "order_counter": 12446,
        "stocks": STOCKS,
        "watch_list": ["NVDA"],
        "transaction_history": [],
    }

    def __init__(self, scenario: Mapping[str, Any]) -> None:  # Any: JSON, as in `State`
        """Begin as a scenario says; numbers that JSON made texts are numbers again."""
        super().__init__(scenario)
        self.state["orders"] = {
            int(key) if isinstance(key, str) and key.isdigit() else key: order
            for key, order in self.state["orders"].items()
        }

    def get_current_time(self) -> object:
        """Return the time, which stands still."""
        return {"current_time": NOW.strftime("%I:%M %p")}

    def get_symbol_by_name(self, name: str) -> object:
        """Return the symbol of a company."""
        return {"symbol": NAMES.get(name, "Stock not found")}

    def get_stock_info(self, symbol: str) -> object:
        """Return the figures of a stock."""
        if symbol not in self.state["stocks"]:
            raise Refusal(f"There is no stock {symbol!r}.")
        return self.state["stocks"][symbol]

    def get_order_details(self, order_id: int) -> object:
        """Return an order."""
        if order_id not in self.state["orders"]:
            known = list(self.state["orders"])
            raise Refusal(f"There is no order {order_id}; there are {known}")
        return self.state["orders"][order_id]

    def cancel_order(self, order_id: int) -> object:
        """Cancel an order that is not completed."""
        order = self.state["orders"].get(order_id)
        if order is None:
            raise Refusal(f"There is no order {order_id}.")
        if order["status"] == "Completed":
            raise Refusal(f"Order {order_id} is completed and cannot be cancelled.")
        order["status"] = "Cancelled"
        return {"order_id": order_id, "status": "Cancelled"}

    def place_order(self, order_type: str, symbol: str, price: float, amount: int) -> object:
        """Place an order; one to buy has to be covered."""
        self._must_be_in("place an order")
        if symbol not in self.state["stocks"]:
            raise Refusal(f"There is no stock {symbol}.")
        if price <= 0 or amount <= 0:
            raise Refusal("Price and amount have to be above 0.")
        cost = float(price) * int(amount)
        balance = self.state["account_info"].get("balance", 0)
        if order_type.lower() == "buy" and cost > balance:
            raise Refusal(f"Insufficient funds: ${cost:.2f} are needed, ${balance:.2f} are there.")
        number = self.state["order_counter"]
        placed = _order(number, order_type, symbol, float(price), amount, "Open")
        self.state["orders"][number] = placed
        self.state["order_counter"] += 1
        return {
            "order_id": number,
            "order_type": order_type,
            "status": "Pending",
            "price": float(price),
            "amount": amount,
        }

    def withdraw_funds(self, amount: float) -> object:
        """Take money out, while the market is open."""
        self._must_be_in("make a transaction")
        if self.state["market_status"] != "Open":
            raise Refusal("The market is closed; there are no transactions.")
        if amount <= 0:
            raise Refusal("The amount has to be above 0.")
        if amount > self.state["account_info"]["balance"]:
            raise Refusal("Insufficient funds for withdrawal.")
        return self._moved("withdrawal", "Withdrawal successful", amount, -amount)

    def fund_account(self, amount: float) -> object:
        """Put money in."""
        self._must_be_in("fund the account")
        if amount <= 0:
            raise Refusal("The amount has to be above 0.")
        return self._moved("deposit", "Account funded successfully", amount, amount)

    def get_account_info(self) -> object:
        """Return the account."""
        self._must_be_in("view account information")
        return self.state["account_info"]

    def trading_login(self, username: str, password: str) -> object:
        """Log in: any name and password will do."""
        told = "Already logged in" if self.state["authenticated"] else "Logged in successfully"
        self.state["authenticated"] = True
        return {"status": told}

    def trading_get_login_status(self) -> object:
        """Tell whether somebody is logged in."""
        return {"status": bool(self.state["authenticated"])}

    def trading_logout(self) -> object:
        """Log out."""
        if not self.state["authenticated"]:
            return {"status": "No user is currently logged in"}
        self.state["authenticated"] = False
        return {"status": "Logged out successfully"}

    def remove_stock_from_watchlist(self, symbol: str) -> object:
        """Take a stock off the list."""
        self._must_be_in("change the watchlist")
        if symbol not in self.state["watch_list"]:
            raise Refusal(f"Stock {symbol} is not on the watchlist.")
        self.state["watch_list"].remove(symbol)
        return {"status": f"Stock {symbol} removed from watchlist successfully."}

    def get_watchlist(self) -> object:
        """Return the list."""
        if not self.state["authenticated"]:
            return ["Error: nobody is authenticated. Log in to view the watchlist."]
        return {"watchlist": self.state["watch_list"]}

    def get_order_history(self) -> object:
        """Return the numbers of all orders."""
        if not self.state["authenticated"]:
            return [{"error": "Nobody is authenticated. Log in to view the order history."}]
        return {"history": list(self.state["orders"])}

    def get_transaction_history(
        self, start_date: str | None = None, end_date: str | None = None
    ) -> object:
        """Return transactions between two days."""
        if not self.state["authenticated"]:
            return [{"error": "Nobody is authenticated. Log in to view transactions."}]
        first = datetime.strptime(start_date, "%Y-%m-%d") if start_date else datetime.min
        last = datetime.strptime(end_date, "%Y-%m-%d") if end_date else datetime.max
        found = [
            one
            for one in self.state["transaction_history"]
            if first <= datetime.strptime(one["timestamp"], _FORM) <= last
        ]
        return {"transaction_history": found}

    def get_available_stocks(self, sector: str) -> object:
        """Return the stocks of a sector."""
        return {"stock_list": [*SECTORS.get(sector, [])]}

    def filter_stocks_by_price(
        self, stocks: Sequence[str], min_price: float, max_price: float
    ) -> object:
        """Return those of some stocks whose price lies between two."""
        known = self.state["stocks"]
        found = [s for s in stocks if min_price <= known.get(s, {}).get("price", 0) <= max_price]
        return {"filtered_stocks": found}

    def add_to_watchlist(self, stock: str) -> object:
        """Put a stock on the list, where there is such a stock."""
        if stock in self.state["stocks"] and stock not in self.state["watch_list"]:
            self.state["watch_list"].append(stock)
        return {"watchlist": self.state["watch_list"]}

    def notify_price_change(self, stocks: Sequence[str], threshold: float) -> object:
        """Tell which of some stocks changed by so much."""
        known = self.state["stocks"]
        changed = [s for s in stocks if s in known and abs(known[s]["percent_change"]) >= threshold]
        if not changed:
            return {"notification": "No significant price changes in the selected stocks."}
        return {"notification": f"Stocks {', '.join(changed)} have significant price changes."}

    def _must_be_in(self, what: str) -> None:
        if not self.state["authenticated"]:
            raise Refusal(f"Nobody is authenticated. Log in to {what}.")

    def _moved(self, kind: str, told: str, amount: float, change: float) -> object:
        self.state["account_info"]["balance"] += change
        at = NOW + timedelta(seconds=self.random.randint(0, DAY_SECONDS))
        self.state["transaction_history"].append(
            {"type": kind, "amount": amount, "timestamp": at.strftime(_FORM)}
        )
        return {"status": told, "new_balance": self.state["account_info"]["balance"]}
