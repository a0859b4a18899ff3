"""A car: doors, engine, brakes, climate, fuel, navigation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pytest_modelbench.benchmarks.bfcl.apps.app import App, Refusal

TANK_GALLONS = 50
MILES_A_GALLON = 20.0
FULL_FORCE = 1000.0
TYRES = ("frontLeft", "frontRight", "rearLeft", "rearRight")
ZIP_CODES = {
    "Rivermist": "83214",
    "Stonebrook": "74532",
    "Maplecrest": "56108",
    "Silverpine": "62947",
    "Shadowridge": "71354",
    "Sunset Valley": "83462",
    "Oakendale": "47329",
    "Willowbend": "52013",
    "Crescent Hollow": "69238",
    "Autumnville": "51479",
    "San Francisco": "94016",
}
DISTANCES = {
    frozenset(pair): miles
    for pair, miles in {
        ("83214", "74532"): 750.0,
        ("56108", "62947"): 320.0,
        ("71354", "83462"): 450.0,
        ("47329", "52013"): 290.0,
        ("69238", "51479"): 630.0,
        ("94016", "83214"): 980.0,
        ("94016", "94704"): 600.0,
        ("94704", "08540"): 2550.0,
        ("94016", "08540"): 1950.0,
        ("62947", "47329"): 1053.0,
        ("94016", "62947"): 780.0,
        ("74532", "94016"): 880.0,
    }.items()
}
SHOP = "456 Oakwood Avenue, Rivermist, 83214"


class Vehicle(App):
    """Forces and the slope are hidden: two runs may differ in them."""

    seed = 141053
    defaults: ClassVar[Mapping[str, Any]] = {  # Any: JSON, as in `State`
        "fuelLevel": 0.0,
        "batteryVoltage": 12.6,
        "engineState": "stopped",
        "doorStatus": dict.fromkeys(("driver", "passenger", "rear_left", "rear_right"), "unlocked"),
        "acTemperature": 25.0,
        "fanSpeed": 50,
        "acMode": "auto",
        "humidityLevel": 50.0,
        "headLightStatus": "off",
        "parkingBrakeStatus": "released",
        "brakePedalStatus": "released",
        "distanceToNextVehicle": 50.0,
        "cruiseStatus": "inactive",
        "destination": "None",
        "frontLeftTirePressure": 32.0,
        "frontRightTirePressure": 32.0,
        "rearLeftTirePressure": 30.0,
        "rearRightTirePressure": 30.0,
    }

    def __init__(self, scenario: Mapping[str, Any]) -> None:  # Any: JSON, as in `State`
        """Begin as a scenario says."""
        super().__init__(scenario)
        for name in ("parkingBrakeForce", "slopeAngle", "brakePedalForce"):
            self.hidden[name] = scenario.get(name, 0.0)
        locked = sum(status == "locked" for status in self.state["doorStatus"].values())
        self.state["remainingUnlockedDoors"] = 4 - locked

    def startEngine(self, ignitionMode: str) -> object:
        """Start, with all doors locked and the brake fully pressed; or stop."""
        car = self.state
        if ignitionMode == "STOP":
            car["engineState"] = "stopped"
        if car["remainingUnlockedDoors"] > 0:
            opened = [door for door, status in car["doorStatus"].items() if status == "unlocked"]
            raise Refusal(
                "All doors must be locked before the engine starts; unlocked are "
                + ", ".join(opened)
            )
        if car["brakePedalStatus"] != "pressed":
            raise Refusal("The brake pedal has to be pressed when the engine starts.")
        if self.hidden["brakePedalForce"] != FULL_FORCE:
            raise Refusal("The brake pedal has to be pressed fully before the engine starts.")
        if car["fuelLevel"] < 0:
            raise Refusal("The fuel tank is empty.")
        if ignitionMode != "START":
            raise Refusal("There is no such ignition mode.")
        car["engineState"] = "running"
        return {name: car[name] for name in ("engineState", "fuelLevel", "batteryVoltage")}

    def fillFuelTank(self, fuelAmount: float) -> object:
        """Add gallons."""
        if fuelAmount < 0:
            raise Refusal("Fuel cannot be negative.")
        if self.state["fuelLevel"] + fuelAmount > TANK_GALLONS:
            raise Refusal("That is more than the tank can hold.")
        self.state["fuelLevel"] += fuelAmount
        return {"fuelLevel": self.state["fuelLevel"]}

    def lockDoors(self, unlock: bool, door: Sequence[str]) -> object:
        """Lock or unlock some doors."""
        wanted = "unlocked" if unlock else "locked"
        for one in door:
            if self.state["doorStatus"][one] != wanted:
                self.state["doorStatus"][one] = wanted
                self.state["remainingUnlockedDoors"] += 1 if unlock else -1
        return {
            "lockStatus": wanted,
            "remainingUnlockedDoors": self.state["remainingUnlockedDoors"],
        }

    def adjustClimateControl(
        self, temperature: float, unit: str = "celsius", fanSpeed: int = 50, mode: str = "auto"
    ) -> object:
        """Set temperature, fan and mode."""
        if not 0 <= fanSpeed <= 100:
            raise Refusal("The fan's speed is from 0 to 100.")
        celsius = (temperature - 32) * 5 / 9 if unit == "fahrenheit" else temperature
        self.state.update(acTemperature=celsius, fanSpeed=fanSpeed, acMode=mode)
        return {
            "currentACTemperature": temperature,
            "climateMode": mode,
            "humidityLevel": self.state["humidityLevel"],
        }

    def get_outside_temperature_from_google(self) -> object:
        """Return a temperature."""
        return {"outsideTemperature": self.random.uniform(-10.0, 40.0)}

    def get_outside_temperature_from_weather_com(self) -> object:
        """Return that the page is gone."""
        return {"error": 404}

    def setHeadlights(self, mode: str) -> object:
        """Switch the lights; automatic is off by day."""
        if mode not in ("on", "off", "auto"):
            raise Refusal("There is no such mode of headlights.")
        self.state["headLightStatus"] = "on" if mode == "on" else "off"
        return {"headlightStatus": self.state["headLightStatus"]}

    def displayCarStatus(self, option: str) -> object:
        """Show one part of the car's status."""
        shown = {
            "fuel": {"fuelLevel": "fuelLevel"},
            "battery": {"batteryVoltage": "batteryVoltage"},
            "doors": {"doorStatus": "doorStatus"},
            "climate": {
                "currentACTemperature": "acTemperature",
                "fanSpeed": "fanSpeed",
                "climateMode": "acMode",
                "humidityLevel": "humidityLevel",
            },
            "headlights": {"headlightStatus": "headLightStatus"},
            "parkingBrake": {
                "parkingBrakeStatus": "parkingBrakeStatus",
                "parkingBrakeForce": "parkingBrakeForce",
                "slopeAngle": "slopeAngle",
            },
            "brakePedal": {
                "brakePedalStatus": "brakePedalStatus",
                "brakePedalForce": "brakePedalForce",
            },
            "engine": {"engineState": "engineState"},
        }.get(option)
        if shown is None:
            raise Refusal("There is no such option.")
        everything = self.state | self.hidden
        return {name: everything[key] for name, key in shown.items()}

    def activateParkingBrake(self, mode: str) -> object:
        """Engage or release the parking brake."""
        if mode not in ("engage", "release"):
            raise Refusal("The mode is engage or release.")
        engaged = mode == "engage"
        self.state["parkingBrakeStatus"] = "engaged" if engaged else "released"
        self.hidden.update(parkingBrakeForce=500.0 if engaged else 0.0, slopeAngle=10.0)
        return {
            "parkingBrakeStatus": self.state["parkingBrakeStatus"],
            "_parkingBrakeForce": self.hidden["parkingBrakeForce"],
            "_slopeAngle": 10.0,
        }

    def pressBrakePedal(self, pedalPosition: float) -> object:
        """Press the pedal, 0 to 1."""
        if not 0 <= pedalPosition <= 1:
            raise Refusal("The pedal's position is from 0 to 1.")
        return self._brake(float(pedalPosition * FULL_FORCE))

    def releaseBrakePedal(self) -> object:
        """Let go of the pedal."""
        return self._brake(0.0)

    def setCruiseControl(
        self, speed: float, activate: bool, distanceToNextVehicle: float
    ) -> object:
        """Switch cruise control, at a speed in steps of 5 up to 120."""
        distance, speed = float(distanceToNextVehicle), float(speed)
        if self.state["engineState"] == "stopped":
            raise Refusal("The engine has to run before cruise control is switched on.")
        self.state["distanceToNextVehicle"] = distance
        if activate and (not 0 <= speed <= 120 or speed % 5):
            raise Refusal("There is no such speed.")
        self.state["cruiseStatus"] = "active" if activate else "inactive"
        return {
            "cruiseStatus": self.state["cruiseStatus"],
            "currentSpeed": speed,
            "distanceToNextVehicle": distance,
        }

    def get_current_speed(self) -> object:
        """Return a speed."""
        return {"currentSpeed": self.random.uniform(0.0, 120.0)}

    def display_log(self, messages: Sequence[str]) -> object:
        """Show messages."""
        return {"log": messages}

    def estimate_drive_feasibility_by_mileage(self, distance: float) -> object:
        """Tell whether the fuel lasts for some miles."""
        return {"canDrive": not self.state["fuelLevel"] * MILES_A_GALLON < distance}

    def liter_to_gallon(self, liter: float) -> object:
        """Convert."""
        return {"gallon": liter * 0.264172}

    def gallon_to_liter(self, gallon: float) -> object:
        """Convert."""
        return {"liter": gallon * 3.78541}

    def estimate_distance(self, cityA: str, cityB: str) -> object:
        """Return the miles between two zip codes."""
        miles = DISTANCES.get(frozenset((cityA, cityB)))
        if miles is None:
            raise Refusal("The distance is not in the database.")
        return {"distance": miles}

    def get_zipcode_based_on_city(self, city: str) -> object:
        """Return the zip code of a city."""
        return {"zipcode": ZIP_CODES.get(city, "00000")}

    def set_navigation(self, destination: str) -> object:
        """Navigate somewhere."""
        self.state["destination"] = destination
        return {"status": "Navigating to " + destination}

    def check_tire_pressure(self) -> object:
        """Return the pressures, and whether their mean is sound."""
        found = {f"{tyre}TirePressure": self.state[f"{tyre}TirePressure"] for tyre in TYRES}
        sound = 30 <= sum(found.values()) / len(found) <= 35
        return {**found, "healthy_tire_pressure": sound, "car_info": {}}

    def find_nearest_tire_shop(self) -> object:
        """Return where the shop is."""
        return {"shopLocation": SHOP}

    def _brake(self, force: float) -> object:
        self.state["brakePedalStatus"] = "pressed" if force else "released"
        self.hidden["brakePedalForce"] = force
        return {"brakePedalStatus": self.state["brakePedalStatus"], "brakePedalForce": force}
