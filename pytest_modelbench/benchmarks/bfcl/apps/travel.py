"""Flights, bookings and the cards that pay for them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, ClassVar

from pytest_modelbench.benchmarks.bfcl.apps.app import App, Refusal, State

TODAY = date(2026, 3, 23)
"""The day by which a traveller's age is reckoned: a verdict is not to change with the calendar."""

AIRPORTS = {
    "Rivermist": "RMS",
    "Stonebrook": "SBK",
    "Maplecrest": "MPC",
    "Silverpine": "SVP",
    "Shadowridge": "SHD",
    "Paris": "CDG",
    "London": "LHR",
    "Sunset Valley": "SSV",
    "Oakendale": "OKD",
    "Willowbend": "WLB",
    "Beijing": "PEK",
    "Tokyo": "HND",
    "Hong Kong": "HKG",
    "Rome": "CIA",
    "Crescent Hollow": "CRH",
    "Autumnville": "ATV",
    "Pinehaven": "PHV",
    "Greenfield": "GFD",
    "San Francisco": "SFO",
    "Los Angeles": "LAX",
    "New York": "JFK",
    "Chicago": "ORD",
    "Boston": "BOS",
}
FARES = {
    "SFO": (
        "LAX 200, JFK 500, ORD 400, BOS 450, RMS 300, SBK 350, MPC 370, SVP 320, SHD 330, "
        "SSV 340, OKD 360, WLB 310, CRH 380, ATV 390, PHV 420, GFD 430, CIA 700"
    ),
    "LAX": (
        "SFO 100, JFK 600, ORD 500, BOS 550, RMS 310, SBK 320, MPC 330, SVP 340, SHD 350, "
        "SSV 360, OKD 370, WLB 380, CRH 390, ATV 400, PHV 410, GFD 420, HND 430"
    ),
    "JFK": (
        "ORD 300, BOS 250, RMS 450, SBK 460, MPC 470, SVP 480, SHD 490, SSV 500, OKD 510, "
        "WLB 520, CRH 530, ATV 540, PHV 550, GFD 560, LAX 570, HND 800, PVG 950, PEK 1000"
    ),
    "ORD": (
        "LAX 180, BOS 200, RMS 350, SBK 360, MPC 370, SVP 380, SHD 390, SSV 400, OKD 410, "
        "WLB 420, CRH 430, ATV 440, PHV 450, GFD 460"
    ),
    "BOS": (
        "RMS 400, SBK 410, MPC 420, SVP 430, SHD 440, SSV 450, OKD 460, WLB 470, CRH 480, "
        "ATV 490, PHV 500, GFD 510"
    ),
    "RMS": (
        "BOS 200, JFK 210, SBK 220, MPC 230, SVP 240, SHD 250, SSV 260, OKD 270, WLB 280, "
        "CRH 290, ATV 300, PHV 310, GFD 320, LAX 330"
    ),
    "SBK": (
        "MPC 200, SVP 210, SHD 220, SSV 230, OKD 240, WLB 250, CRH 260, ATV 270, PHV 280, GFD 290"
    ),
    "MPC": "SVP 210, SHD 220, SSV 230, OKD 240, WLB 250, CRH 260, ATV 270, PHV 280, GFD 290",
    "SVP": "SHD 230, SSV 240, OKD 250, WLB 260, CRH 270, ATV 280, PHV 290, GFD 300",
    "SHD": "SSV 220, OKD 230, WLB 240, CRH 250, ATV 260, PHV 270, GFD 280",
    "SSV": "OKD 240, WLB 250, CRH 260, ATV 270, PHV 280, GFD 290",
    "OKD": "WLB 230, CRH 240, ATV 250, PHV 260, GFD 270, LAX 220",
    "WLB": "CRH 250, ATV 260, PHV 270, GFD 280",
    "CRH": "ATV 240, PHV 250, GFD 260, SFO 270, RMS 280, HKG 290, JFK 300",
    "ATV": "PHV 230, GFD 240",
    "PHV": "GFD 220",
    "LHR": "CDG 100",
}
"""From → to and dollars, in economy; there are no other routes."""

CLASSES = {"economy": 1, "business": 2, "first": 5}
RATES = {
    "RMB": 7,
    "EUR": 0.8,
    "JPY": 110,
    "GBP": 0.7,
    "CAD": 1.3,
    "AUD": 1.4,
    "INR": 70,
    "RUB": 60,
    "BRL": 3.8,
    "MXN": 20,
}
"""What a dollar is in."""

INVOICE = (
    "travel_date",
    "travel_from",
    "travel_to",
    "travel_class",
    "travel_cost",
    "transaction_id",
)


class Travel(App):
    """Cards and bookings by their ids; who acts has to have the token."""

    seed = 141053
    defaults: ClassVar[Mapping[str, Any]] = {  # Any: JSON, as in `State`
        "credit_card_list": {},
        "booking_record": {},
        "access_token": None,
        "token_type": None,
        "token_expires_in": None,
        "token_scope": None,
        "user_first_name": None,
        "user_last_name": None,
        "budget_limit": None,
    }

    def authenticate_travel(
        self,
        client_id: str,
        client_secret: str,
        refresh_token: str,
        grant_type: str,
        user_first_name: str,
        user_last_name: str,
    ) -> object:
        """Log in and get a token."""
        self.state.update(
            token_expires_in=2,
            access_token=self._drawn(100_000, 999_999),
            token_type="Bearer",
            token_scope=grant_type,
            user_first_name=user_first_name,
            user_last_name=user_last_name,
        )
        return {
            "expires_in": 2,
            "access_token": self.state["access_token"],
            "token_type": "Bearer",
            "scope": grant_type,
        }

    def travel_get_login_status(self) -> object:
        """Tell whether there is a token."""
        return {"status": self.state["token_expires_in"] not in (None, 0)}

    def get_budget_fiscal_year(
        self, lastModifiedAfter: str | None = None, includeRemoved: str | None = None
    ) -> object:
        """Return the year."""
        return {"budget_fiscal_year": "2018"}

    def register_credit_card(
        self,
        access_token: str,
        card_number: str,
        expiration_date: str,
        cardholder_name: str,
        card_verification_number: int,
    ) -> object:
        """Add a card, with some money on it."""
        if self.state["token_expires_in"] is None:
            raise Refusal("There is no token yet")
        self._must_have(access_token)
        if card_number in self.state["credit_card_list"]:
            raise Refusal("The card is registered already")
        card_id = self._drawn(100_000_000_000, 999_999_999_999)
        self.state["credit_card_list"][card_id] = {
            "card_number": card_number,
            "expiration_date": expiration_date,
            "cardholder_name": cardholder_name,
            "card_verification_number": card_verification_number,
            "balance": self.random.randint(10_000, 99_999),
        }
        return {"card_id": card_id}

    def get_flight_cost(
        self, travel_from: str, travel_to: str, travel_date: str, travel_class: str
    ) -> object:
        """Return what a flight costs."""
        return {"travel_cost_list": [_fare(travel_from, travel_to, travel_date, travel_class)]}

    def get_credit_card_balance(self, access_token: str, card_id: str) -> object:
        """Return what is on a card."""
        self._must_have(access_token)
        cards = self.state["credit_card_list"]
        if card_id not in cards:
            raise Refusal(f"The card is not registered; there are {list(cards)}")
        return {"card_balance": cards[card_id]["balance"]}

    def book_flight(
        self,
        access_token: str,
        card_id: str,
        travel_date: str,
        travel_from: str,
        travel_to: str,
        travel_class: str,
    ) -> object:
        """Book a flight, paid by a card."""
        no: dict[str, object] = {"booking_status": False}
        self._must_have(access_token, **no)
        card = self.state["credit_card_list"].get(card_id)
        if card is None:
            raise Refusal("The card is not registered", **no)
        if "balance" not in card:
            raise Refusal("The card has no balance", **no)
        for what, code in (("departure", travel_from), ("destination", travel_to)):
            if code not in AIRPORTS.values():
                raise Refusal(f"There is no {what} airport {code}", **no)
        try:
            datetime.strptime(travel_date, "%Y-%m-%d")
            cost = _fare(travel_from, travel_to, travel_date, travel_class)
        except ValueError as error:
            raise Refusal(str(error), **no) from None
        if card["balance"] < cost:
            raise Refusal("Insufficient funds", **no)
        limit = self.state["budget_limit"]
        if limit is not None and card["balance"] < limit:
            raise Refusal("The balance is less than the budget's limit", **no)
        card["balance"] -= cost
        booking_id = self._drawn(1_000_000, 9_999_999)
        self.state["booking_record"][booking_id] = {
            "card_id": card_id,
            "travel_date": travel_date,
            "travel_from": travel_from,
            "travel_to": travel_to,
            "travel_class": travel_class,
            "travel_cost": cost,
            "transaction_id": self._drawn(10_000_000, 99_999_999),
        }
        return {
            "booking_id": booking_id,
            "transaction_id": self.state["booking_record"][booking_id]["transaction_id"],
            "booking_status": True,
            "booking_history": {},
        }

    def retrieve_invoice(
        self,
        access_token: str,
        booking_id: str | None = None,
        insurance_id: str | None = None,
    ) -> object:
        """Return the invoice of a booking."""
        self._must_have(access_token)
        booking = self._booking(booking_id)
        return {"invoice": {"booking_id": booking_id, **{name: booking[name] for name in INVOICE}}}

    def get_booking_history(self, access_token: str) -> object:
        """Return all bookings."""
        self._must_have(access_token)
        return {"booking_history": copy.deepcopy(self.state["booking_record"])}

    def list_all_airports(self) -> object:
        """Return the airports' codes."""
        return list(AIRPORTS.values())

    def cancel_booking(self, access_token: str, booking_id: str) -> object:
        """Cancel a booking; the card gets its money back."""
        no: dict[str, object] = {"cancel_status": False}
        self._must_have(access_token, **no)
        booking = self._booking(booking_id, **no)
        self.state["credit_card_list"][booking["card_id"]]["balance"] += booking["travel_cost"]
        del self.state["booking_record"][booking_id]
        return {"cancel_status": True}

    def compute_exchange_rate(
        self, base_currency: str, target_currency: str, value: float
    ) -> object:
        """Convert dollars, or into dollars."""
        if base_currency == "USD" and target_currency in RATES:
            return {"exchanged_value": float(value * RATES[target_currency])}
        if target_currency == "USD" and base_currency in RATES:
            return {"exchanged_value": round(value / RATES[base_currency], 2)}
        raise ValueError("There is no exchange rate for these currencies.")

    def verify_traveler_information(
        self, first_name: str, last_name: str, date_of_birth: str, passport_number: str
    ) -> object:
        """Check that a traveller is the user, of age, and of the United States."""
        user = (self.state["user_first_name"], self.state["user_last_name"])
        why = ""
        try:
            born = datetime.strptime(date_of_birth, "%Y-%m-%d").date()
        except ValueError:
            born, why = TODAY, "The date of birth is to be YYYY-MM-DD."
        age = TODAY.year - born.year - ((TODAY.month, TODAY.day) < (born.month, born.day))
        if user != (first_name, last_name):
            why = f"Nobody books for another: expected {user[0]} {user[1]}."
        elif not why and age < 18:
            why = "A traveller has to be 18."
        elif not why and not passport_number.startswith("US"):
            why = "The passport has to be of the United States."
        if why:
            return {"verification_status": False, "verification_failure": why}
        return {"verification_status": True}

    def set_budget_limit(self, access_token: str, budget_limit: float) -> object:
        """Set the limit, in dollars."""
        self._must_have(access_token)
        self.state["budget_limit"] = float(budget_limit)
        return {"budget_limit": self.state["budget_limit"]}

    def get_nearest_airport_by_city(self, location: str) -> object:
        """Return the airport of a city."""
        return {"nearest_airport": AIRPORTS.get(location, "Unknown")}

    def purchase_insurance(
        self,
        access_token: str,
        insurance_type: str,
        booking_id: str,
        insurance_cost: float,
        card_id: str,
    ) -> object:
        """Insure a booking."""
        no: dict[str, object] = {"insurance_status": False}
        self._must_have(access_token, **no)
        limit = self.state["budget_limit"]
        if limit is not None and limit < insurance_cost:
            raise Refusal("That is more than the budget's limit", **no)
        self._booking(booking_id, **no)
        if card_id not in self.state["credit_card_list"]:
            raise Refusal("The card is not registered", **no)
        self.state["credit_card_list"][card_id]["balance"] -= insurance_cost
        insurance = self._drawn(100_000_000, 999_999_999)
        return {"insurance_id": insurance, "insurance_status": True}

    def contact_customer_support(self, booking_id: str, message: str) -> object:
        """Write to the support."""
        self._booking(booking_id)
        return {"customer_support_message": "Thank you; we will get back to you shortly."}

    def get_all_credit_cards(self) -> object:
        """Return the cards."""
        return {"credit_card_list": self.state["credit_card_list"]}

    def _must_have(self, token: str, **others: object) -> None:
        if self.state["token_expires_in"] == 0:
            raise Refusal("The token is expired", **others)
        if token != self.state["access_token"]:
            raise Refusal("The access token is invalid", **others)

    def _booking(self, booking_id: str | None, **others: object) -> State:
        if booking_id not in self.state["booking_record"]:
            raise Refusal("There is no such booking", **others)
        found: State = self.state["booking_record"][booking_id]
        return found


def _fare(start: str, end: str, day: str, travel_class: str) -> float:
    """Return a fare: by class, and doubled where the digits of the day have an even sum."""
    routes = dict(route.split() for route in FARES.get(start, "").split(", ") if route)
    if end not in routes:
        raise ValueError("There is no route between these airports.")
    if travel_class not in CLASSES:
        raise ValueError(f"There is no such class; there are {', '.join(CLASSES)}.")
    even = sum(int(sign) for sign in day if sign.isdigit()) % 2 == 0
    return float(int(routes[end]) * CLASSES[travel_class] * (2 if even else 1))
