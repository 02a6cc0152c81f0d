"""Invented names of the demo city: its quarters' neighbourhoods, and the types of incident below their groups."""

from __future__ import annotations

import itertools

STEMS = (
    "Alder", "Amber", "Beacon", "Bramble", "Candle", "Clover", "Copper", "Ember", "Falcon", "Flint",
    "Foxglove", "Garnet", "Heron", "Juniper", "Kestrel", "Lantern", "Marble", "Pepper", "Saffron", "Thistle",
)  # fmt: skip

#: Quarter → (number of its neighbourhoods, second words of their names).
QUARTERS: dict[str, tuple[int, tuple[str, ...]]] = {
    "centre": (24, ("Square", "Arcade")),
    "harbour": (30, ("Quay", "Wharf")),
    "works": (36, ("Foundry", "Sidings")),
    "terraces": (76, ("Row", "Lanes", "Terrace", "Yard")),
    "suburbs": (80, ("Garden", "Green", "Meadow", "Park")),
    "hills": (32, ("Heights", "Rise")),
}

#: Neighbourhoods, quarter by quarter: 278 names.
NEIGHBOURHOODS: tuple[str, ...] = tuple(
    name
    for count, seconds in QUARTERS.values()
    for name in itertools.islice((f"{stem} {second}" for second in seconds for stem in STEMS), count)
)

#: Group → its types, the frequent ones first: 174 types.
INCIDENTS: dict[str, tuple[str, ...]] = {
    "Medical": (
        "Breathing difficulty", "Chest pain", "Unconscious person", "Sick person", "Abdominal pain", "Seizure",
        "Stroke signs", "Dizziness", "Back pain", "Allergic reaction", "Diabetic emergency", "Fever", "Fainting",
        "Headache", "Palpitations", "Vomiting", "Overdose", "Intoxication", "Panic attack", "Psychiatric crisis",
        "Cardiac arrest", "Nosebleed", "Dehydration", "Labour pains", "Birth", "Infection", "Asthma attack",
        "Choking", "Heat stroke", "Hypothermia", "Poisoning", "Eye complaint", "Ear complaint", "Toothache", "Rash",
        "Medication error", "Catheter trouble", "Oxygen supply trouble", "Care transfer", "Hospital transfer",
        "Welfare check", "Child with cough", "Circulatory shock", "Death at home",
    ),
    "Injury": (
        "Fall at home", "Fall outdoors", "Cut", "Head injury", "Sprain", "Broken arm", "Broken leg", "Hip injury",
        "Burn", "Scald", "Assault injury", "Stab wound", "Dog bite", "Sports injury", "Playground injury",
        "Machine injury", "Fall from height", "Crush injury", "Electric shock", "Eye injury", "Insect sting",
        "Bicycle fall", "Scooter fall", "Gunshot wound",
    ),
    "Fire": (
        "Kitchen fire", "Rubbish fire", "Smoke in building", "Car fire", "Grass fire", "Roof fire", "Chimney fire",
        "Balcony fire", "Cellar fire", "Garage fire", "Shed fire", "Electrical fire", "Lift shaft fire",
        "Warehouse fire", "Workshop fire", "Lorry fire", "Bus fire", "Boat fire", "Tree fire", "Woodland fire",
        "Container fire", "Rekindled fire", "Explosion", "Railway fire",
    ),
    "Alarm": (
        "Smoke alarm, home", "Fire alarm, office", "Fire alarm, shop", "Fire alarm, school", "Fire alarm, hotel",
        "Fire alarm, care home", "Fire alarm, hospital", "Fire alarm, factory", "Sprinkler flow", "Pull station",
        "Carbon monoxide alarm", "Gas detector", "Intruder alarm", "Personal alarm", "Lift alarm", "Test alarm",
    ),
    "Traffic": (
        "Car collision", "Pedestrian hit", "Cyclist hit", "Motorcycle crash", "Lorry collision", "Bus incident",
        "Tram incident", "Hit and run", "Vehicle overturned", "Person trapped in car", "Fuel on road",
        "Debris on road", "Breakdown in tunnel", "Signal failure", "Car in water", "Animal on road", "Pile-up",
        "Train incident", "Level crossing incident", "Road rage",
    ),
    "Hazard": (
        "Gas smell", "Gas leak", "Power line down", "Chemical smell", "Chemical spill", "Oil spill", "Water main break",
        "Flooded cellar", "Flooded street", "Fallen tree", "Loose facade", "Storm damage", "Suspicious parcel",
        "Unexploded ordnance", "Radiation alert", "Collapsed building",
    ),
    "Rescue": (
        "Person in lift", "Locked out", "Locked in car", "Person in water", "Drifting boat", "Animal rescue",
        "Person on roof", "Person on ledge", "Crane rescue", "Trench collapse", "Missing person", "Ice rescue",
    ),
    "Disorder": (
        "Noise", "Street fight", "Domestic dispute", "Threat", "Vandalism", "Shoplifting", "Burglary", "Robbery",
        "Trespass", "Crowd trouble",
    ),
    "Service": (
        "Lift assistance", "Advice", "Water shut-off", "Silent call", "Hoax", "Inspection", "Police assistance",
        "Ambulance assistance",
    ),
}  # fmt: skip

GROUPS: tuple[str, ...] = tuple(INCIDENTS)
TYPES: tuple[str, ...] = tuple(itertools.chain.from_iterable(INCIDENTS.values()))
#: Group number of each type.
GROUP_OF_TYPE: tuple[int, ...] = tuple(g for g, types in enumerate(INCIDENTS.values()) for _ in types)

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
CHANNELS = ("Mobile", "Landline", "Alarm line", "Care link", "App")
