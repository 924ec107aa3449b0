"""How people speak of places: kinds of them, "here", "X near Y"; and how a place is shown.

Knows no provider; the tags are OpenStreetMap's.
"""

from __future__ import annotations

import re

from executors._sdk.values import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.geo import Place, Spot

# Tag → what people call it. Most places of a kind do not have its word in their name.
_KINDS = {
    "amenity:pharmacy": "farmacia farmacie pharmacy pharmacies chemist chemists",
    "amenity:hospital": "ospedale ospedali hospital hospitals",
    "amenity:doctors": "medico medici ambulatorio doctor doctors gp",
    "amenity:dentist": "dentista dentisti dentist dentists",
    "amenity:veterinary": (
        "veterinario veterinari clinica_veterinaria vet vets vet_clinic vet_clinics veterinarian"
    ),
    "amenity:restaurant": "ristorante ristoranti trattoria trattorie restaurant restaurants",
    "amenity:cafe": "caffe caffetteria cafe cafes coffee_shop coffee_shops",
    "amenity:bar": "bar bars",
    "amenity:pub": "pub pubs",
    "amenity:ice_cream": "gelateria gelaterie ice_cream_shop",
    "amenity:bank": "banca banche bank banks",
    "amenity:atm": "bancomat atm atms cash_machine cash_machines",
    "amenity:post_office": "ufficio_postale uffici_postali poste post_office post_offices",
    "amenity:fuel": "benzinaio benzinai distributore distributori petrol_station gas_station",
    "amenity:charging_station": "colonnina colonnine charging_station charging_stations",
    "amenity:parking": "parcheggio parcheggi parking car_park car_parks",
    "amenity:library": "biblioteca biblioteche library libraries",
    "amenity:school": "scuola scuole school schools",
    "amenity:police": "polizia questura police police_station",
    "amenity:toilets": "bagni_pubblici bagno_pubblico toilets public_toilets toilet",
    "amenity:drinking_water": "fontanella fontanelle drinking_water",
    "amenity:cinema": "cinema cinemas movie_theater",
    "amenity:theatre": "teatro teatri theatre theatres theater theaters",
    "amenity:place_of_worship": "chiesa chiese church churches",
    "shop:supermarket": "supermercato supermercati supermarket supermarkets",
    "shop:bakery": "panetteria panificio panettiere fornaio forno bakery bakeries",
    "shop:butcher": "macelleria macellaio butcher butchers",
    "shop:hairdresser": "parrucchiere parrucchieri barbiere hairdresser hairdressers barber",
    "shop:hardware": "ferramenta hardware_store hardware_stores hardware_shop",
    "shop:tyres": "gommista gommisti tyre_shop tire_shop",
    "shop:car_repair": "meccanico officina mechanic mechanics garage",
    "shop:newsagent": "edicola edicole giornalaio newsagent newsagents",
    "shop:tobacco": "tabaccheria tabaccaio tobacconist",
    "shop:optician": "ottico ottici optician opticians",
    "shop:books": "libreria librerie bookshop bookshops bookstore bookstores",
    "tourism:hotel": "albergo alberghi hotel hotels",
    "tourism:museum": "museo musei museum museums",
    "tourism:camp_site": "campeggio campeggi campsite campsites",
    "leisure:park": "parco parchi park parks",
    "leisure:fitness_centre": "palestra palestre gym gyms",
    "leisure:playground": "parco_giochi playground playgrounds",
    "railway:station": "stazione stazioni train_station railway_station",
    "aeroway:aerodrome": "aeroporto aeroporti airport airports",
}
_TAGS = {word.replace("_", " "): tag for tag, words in _KINDS.items() for word in words.split()}
_LITTLE = re.compile(
    r"^(?:un'|una?|uno|il|lo|la|l'|i|gli|le|qualche|an?|the|some|any)\s*\b|"
    r"\s+(?:piu vicin[aoie]|vicin[aoie]|nearest|closest|nearby|near|aperte?|aperti|aperto|open)$|"
    r"^(?:nearest|closest)\s+"
)
_ABOUT_HERE = re.compile(
    r"(?ix)^(?:the\s+)?(?:nearest|closest)\s+ | \s+(?:(?:pi[uù]\s+vicin[oaie]|nearest|closest)"
    r"(?:\s+(?:a|to)\s+(?:me|noi|us))? | vicin[oaie]\s+a\s+(?:me|noi) | qui\s+(?:vicino|intorno)"
    r"| nei\s+(?:dintorni|paraggi) | in\s+zona | near(?:by|\s+(?:me|us|here))"
    r"| (?:around|close\s+to)\s+(?:me|us|here) | close\s+by)\s*[?.!]*$"
)
_HERE = frozenset(
    """qui qua vicino intorno dintorni nei_dintorni nei_paraggi da_me vicino_a_me qui_vicino
    in_zona zona attorno_a_me intorno_a_me nearest closest here near_me nearby around around_here
    around_me close_by close_to_me me my_location current_location la_mia_posizione
    posizione_attuale""".split()
)
_NEAR = re.compile(
    r"(?i)^(?P<what>.+?)\s+(?:vicin[aoie]\s+(?:a|ad|al|allo|alla|ai|agli|alle|all')|"
    r"(?:nei\s+pressi|nelle\s+vicinanze)\s+d(?:i|el|ella|ello|ell')|"
    r"near|nearest\s+to|close\s+to|around)\s*\b(?P<where>.+)$"
)


def tag_of(query: str) -> str | None:
    """The tag of what is looked for, when the words are a kind of place and nothing else."""
    words = fold(query)
    while True:
        if words in _TAGS:
            return _TAGS[words]
        shorter = _LITTLE.sub("", words).strip()
        if shorter == words:
            return None
        words = shorter


def is_here(text: str) -> bool:
    """Whether the words mean where the person is."""
    return fold(text).strip(" .,!?").replace(" ", "_") in _HERE


def without_here(query: str) -> str:
    """`the nearest Ikea`, `Ikea più vicina` → `Ikea`: without what says "around me"."""
    return _ABOUT_HERE.sub("", " ".join(query.split())).strip() or query


def is_the_thing(near: str, query: str) -> bool:
    """Whether what is given as the place is only what is looked for, once more."""
    tag = tag_of(without_here(near)) if near else None
    return tag is not None and tag == tag_of(without_here(query))


def split_near(query: str) -> tuple[str, str | None]:
    """`farmacia vicino a Porta Romana` → what, and where."""
    match = _NEAR.match(" ".join(query.split()))
    if match is None:
        return query, None
    return match["what"], match["where"].strip()


def distance_text(metres: float, lang: str) -> str:
    """`350 m`, `1,2 km`: no finer than anybody walks."""
    if metres < 995:
        return f"{max(10, round(metres, -1)):.0f} m"
    km = metres / 1000
    text = f"{km:.1f}" if km < 9.95 else f"{km:.0f}"
    return f"{text.replace('.', ',') if lang == 'it' else text} km"


def fields(place: Place, *, lang: str, origin: Spot | None = None) -> dict[str, Any]:
    """A place as fields of an entry, with its distance when it is known from where."""
    shown: dict[str, Any] = {
        "name": place.name,
        "address": place.address,
        "lat": place.spot.lat,
        "lon": place.spot.lon,
        "coords": place.spot.text,
        "kind": place.kind,
        "map": place.spot.map,
        "opening": _opening(place, lang),
    }
    if origin is not None:
        metres = origin.metres_to(place.spot)
        shown |= {"distance_m": round(metres), "distance": distance_text(metres, lang)}
    return {key: value for key, value in shown.items() if value != ""}


def _opening(place: Place, lang: str) -> str:
    """`aperto ora, 08:00–19:30`, `closed now`; "" when nothing is known."""
    words = ("open now", "closed now") if lang == "en" else ("aperto ora", "chiuso ora")
    now = "" if place.is_open is None else words[0 if place.is_open else 1]
    return ", ".join(filter(None, (now, place.hours)))
