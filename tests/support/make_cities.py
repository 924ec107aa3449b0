"""Makes `executors/get_now/cities.json`: `python -m tests.support.make_cities`.

Names come from CLDR (through babel): the example city of every zone and every country that lives
on one clock, in Italian and English. What people ask for and CLDR lacks stands below by hand.

The file: `places` is a list of [zone, Italian name, English name] with a fourth element 1 when the
name is no town (a country, an island, an abbreviation) and so cannot follow "a" or "in"; `names`
maps a folded name to an index of `places`; `many` lists folded names of countries with several
clocks, whose time cannot be told without a town.
"""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

from babel import Locale
from babel.core import get_global

from executors.get_now.main import fold

OUT = Path(__file__).parents[2] / "executors" / "get_now" / "cities.json"

# Zone: names as `Italian=English|other spelling`, apart by commas. Left of `=` serves both when
# there is no `=`.
TOWNS = """
Europe/Rome: Milano=Milan, Napoli=Naples, Torino=Turin, Firenze=Florence, Venezia=Venice
Europe/Rome: Genova=Genoa, Bologna, Palermo, Bari, Catania, Verona, Padova=Padua, Trieste
Europe/Rome: Brescia, Parma, Modena, Perugia, Cagliari, Pisa, Bergamo, Trento
Europe/Rome: Bolzano=Bolzano|Bozen, Ancona, Aosta, Potenza, Campobasso, Catanzaro
Europe/Rome: Reggio Calabria, Reggio Emilia, Messina, Lecce, Pescara, Siena, Lucca, Rimini
Europe/Rome: Ravenna, Udine, Salerno, Livorno, Como, L'Aquila
Europe/Berlin: Monaco di Baviera=Munich|München|Muenchen, Amburgo=Hamburg, Francoforte=Frankfurt
Europe/Berlin: Colonia=Cologne|Köln, Stoccarda=Stuttgart, Lipsia=Leipzig, Dresda=Dresden
Europe/Berlin: Düsseldorf|Duesseldorf, Norimberga=Nuremberg|Nürnberg, Brema=Bremen
Europe/Paris: Marsiglia=Marseille|Marseilles, Lione=Lyon|Lyons, Nizza=Nice, Tolosa=Toulouse
Europe/Paris: Strasburgo=Strasbourg, Bordeaux, Lilla=Lille, Nantes
Europe/Madrid: Barcellona=Barcelona, Siviglia=Seville|Sevilla, Valencia, Bilbao, Malaga=Málaga
Europe/Madrid: Granada, Saragozza=Zaragoza|Saragossa, Palma di Maiorca=Palma
Atlantic/Canary: Las Palmas, Tenerife
Europe/London: Manchester, Liverpool, Birmingham, Edimburgo=Edinburgh, Glasgow, Oxford, Cambridge
Europe/London: Bristol, Leeds, Cardiff, Belfast
Europe/Dublin: Cork, Galway
Europe/Lisbon: Porto=Porto|Oporto, Faro
Europe/Zurich: Ginevra=Geneva|Genève, Basilea=Basel, Berna=Bern, Lugano, Losanna=Lausanne
Europe/Zurich: Lucerna=Lucerne
Europe/Vienna: Salisburgo=Salzburg, Innsbruck, Graz
Europe/Brussels: Anversa=Antwerp, Bruges, Gand=Ghent
Europe/Amsterdam: Rotterdam, L'Aia=The Hague|Den Haag, Utrecht, Eindhoven
Europe/Warsaw: Cracovia=Krakow|Kraków, Danzica=Gdansk|Gdańsk, Breslavia=Wroclaw|Wrocław
Europe/Prague: Brno
Europe/Athens: Salonicco=Thessaloniki
Europe/Istanbul: Ankara, Smirne=Izmir, Antalya
Europe/Moscow: San Pietroburgo=Saint Petersburg|St Petersburg
Asia/Yekaterinburg: Ekaterinburg=Ekaterinburg|Yekaterinburg
Europe/Kyiv: Leopoli=Lviv, Odessa=Odesa
Europe/Stockholm: Göteborg=Gothenburg|Goteborg, Malmö=Malmo
Europe/Oslo: Bergen
America/New_York: New York=New York|NYC|New York City|Manhattan|Brooklyn, Boston
America/New_York: Washington=Washington|Washington DC|Washington D.C., Filadelfia=Philadelphia
America/New_York: Miami, Atlanta, Orlando, Baltimore, Pittsburgh, Cleveland, Charlotte, Tampa
America/Chicago: Houston, Dallas, Austin, San Antonio, New Orleans, Minneapolis
America/Chicago: St. Louis|Saint Louis, Nashville, Memphis, Kansas City, Milwaukee
America/Denver: Salt Lake City, Albuquerque
America/Los_Angeles: San Francisco, Seattle, San Diego, Las Vegas, Portland, San Jose, Sacramento
America/Los_Angeles: Oakland, Silicon Valley, Palo Alto, Hollywood
Pacific/Honolulu: Honolulu
America/Toronto: Montréal=Montreal, Ottawa, Québec=Quebec City|Quebec
America/Edmonton: Calgary
America/Mexico_City: Guadalajara, Puebla
America/Sao_Paulo: San Paolo=São Paulo|San Paulo, Rio de Janeiro=Rio de Janeiro|Rio
America/Sao_Paulo: Brasilia=Brasília, Belo Horizonte, Curitiba, Porto Alegre
America/Sao_Paulo: Florianópolis=Florianopolis
America/Argentina/Buenos_Aires: Buenos Aires, Rosario
America/Guayaquil: Quito
America/Bogota: Bogotá=Bogota, Medellín=Medellin, Cali, Cartagena
America/La_Paz: La Paz
America/Santiago: Santiago del Cile=Santiago|Santiago de Chile, Valparaíso=Valparaiso
America/Caracas: Maracaibo
Asia/Shanghai: Pechino=Beijing|Peking, Canton=Guangzhou, Shenzhen, Wuhan, Chengdu, Xi'an|Xian
Asia/Shanghai: Nanchino=Nanjing, Hangzhou, Tianjin, Chongqing
Asia/Tokyo: Tokyo=Tokyo|Tokio, Osaka, Kyoto, Nagoya, Sapporo, Fukuoka, Yokohama, Kobe, Hiroshima
Asia/Tokyo: Nagasaki
Asia/Seoul: Busan, Incheon
Asia/Kolkata: Nuova Delhi=New Delhi, Delhi, Mumbai=Mumbai|Bombay, Bangalore=Bangalore|Bengaluru
Asia/Kolkata: Chennai=Chennai|Madras, Hyderabad, Pune, Jaipur, Goa, Agra
Asia/Karachi: Islamabad, Lahore
Asia/Ho_Chi_Minh: Ho Chi Minh=Ho Chi Minh City|Saigon, Hanoi, Da Nang
Asia/Jakarta: Bandung
Asia/Makassar: Denpasar
Asia/Bangkok: Chiang Mai
Asia/Dubai: Abu Dhabi
Asia/Riyadh: La Mecca=Mecca, Gedda=Jeddah, Medina
Asia/Jerusalem: Tel Aviv, Haifa
Asia/Tehran: Isfahan
Asia/Almaty: Astana
Asia/Kathmandu: Kathmandu=Kathmandu|Katmandu
Africa/Casablanca: Rabat, Marrakech=Marrakesh|Marrakech, Fès=Fez, Tangeri=Tangier
Africa/Cairo: Alessandria d'Egitto=Alexandria, Sharm el-Sheikh|Sharm, Luxor, Hurghada
Africa/Johannesburg: Città del Capo=Cape Town, Durban, Pretoria
Africa/Lagos: Abuja
Africa/Dar_es_Salaam: Zanzibar, Dodoma
Australia/Sydney: Canberra, Newcastle
Australia/Brisbane: Gold Coast, Cairns
Pacific/Auckland: Wellington, Christchurch, Queenstown
"""
# What is asked by name and is no town.
LABELS = """
UTC: UTC=UTC|GMT|Z|Greenwich|Zulu|Coordinated Universal Time
Europe/Paris: CET=CET|CEST|MEZ|MESZ
Europe/Athens: EET=EET|EEST
Europe/Lisbon: WET=WET|WEST
Europe/London: BST, Inghilterra=England, Scozia=Scotland, Galles=Wales
Europe/London: Gran Bretagna=Great Britain|UK|Britain, Irlanda del Nord=Northern Ireland
Europe/Moscow: MSK
America/New_York: ET=ET|EST|EDT|Eastern Time|US Eastern, Florida, Massachusetts, Georgia USA
America/Chicago: CT=CT|CDT|Central Time, Texas, Illinois
America/Denver: MT=MT|MST|MDT|Mountain Time, Colorado, Utah
America/Phoenix: Arizona
America/Los_Angeles: PT=PT|PST|PDT|Pacific Time, California, Nevada, Oregon
America/Anchorage: Alaska=Alaska|AKST|AKDT
Pacific/Honolulu: Hawaii=Hawaii|HST|Hawai'i
Asia/Tokyo: JST
Asia/Seoul: KST, Corea=Korea
Asia/Kolkata: IST
Asia/Singapore: SGT
Asia/Hong_Kong: HKT
Australia/Sydney: AEST=AEST|AEDT, Nuovo Galles del Sud=New South Wales
Australia/Perth: AWST
Australia/Adelaide: ACST=ACST|ACDT
Pacific/Auckland: NZST=NZST|NZDT
America/Sao_Paulo: BRT
Europe/Rome: Sicilia=Sicily, Sardegna=Sardinia, Toscana=Tuscany, Lombardia=Lombardy
Europe/Rome: Vaticano=Vatican
Europe/Amsterdam: Olanda=Holland
Asia/Makassar: Bali
Asia/Dubai: Emirati=Emirates|UAE
Africa/Johannesburg: Sudafrica=South Africa
Europe/Madrid: Catalogna=Catalonia, Ibiza, Maiorca=Majorca|Mallorca, Minorca=Menorca
Atlantic/Canary: Canarie=Canary Islands|Canaries
Europe/Athens: Creta=Crete
Europe/Prague: Repubblica Ceca=Czech Republic
"""
# Several clocks on paper, one that people mean.
MEANT = {
    "CN": "Asia/Shanghai",
    "CL": "America/Santiago",
    "CY": "Asia/Nicosia",
    "EC": "America/Guayaquil",
    "ES": "Europe/Madrid",
    "NZ": "Pacific/Auckland",
    "PT": "Europe/Lisbon",
    "UA": "Europe/Kyiv",
}
SKIPPED = ("Etc/", "SystemV/", "US/", "posix/", "right/")
# CLDR example "towns" that are none.
ISLANDS = """
Isola Isole Isle Island Islands Azzorre Azores Canarie Canary Canarias Bermuda Maldive Maldives
Galapagos Galápagos Guam Guadalupa Guadeloupe Martinica Martinique Giamaica Jamaica Porto_Rico
Puerto_Rico Figi Fiji Samoa Maiotta Mayotte Jersey Guernsey Reunion Réunion Nauru Niue Palau
Tahiti Tongatapu Barbados Curacao Curaçao Aruba Antigua Anguilla Grenada Dominica Costa_Rica
El_Salvador Capo_Verde Cape_Verde Georgia_del_Sud South_Georgia Montserrat Tortola Cayman Comore
Comoro Chagos Mauritius Marchesi Marquesas Svalbard
"""


class Book:
    def __init__(self) -> None:
        self.places: list[list[object]] = []
        self.names: dict[str, int] = {}
        self.many: set[str] = set()

    def add(self, zone: str, italian: str, english: str, *others: str, label: bool) -> None:
        """The first who claims a name keeps it."""
        names = [fold(name) for name in (italian, english, *others)]
        fresh = [name for name in dict.fromkeys(names) if name and name not in self.names]
        if not fresh:
            return
        self.places.append([zone, italian, english, 1] if label else [zone, italian, english])
        for name in fresh:
            self.names[name] = len(self.places) - 1


def by_hand(book: Book, table: str, *, label: bool) -> None:
    for line in table.strip().splitlines():
        zone, _, towns = line.partition(": ")
        for town in towns.split(", "):
            italian, _, english = town.partition("=")
            first, *others = (english or italian).split("|")
            book.add(zone, italian.split("|")[0], first, *others, label=label)


def countries(book: Book) -> None:
    italian, english = Locale("it").territories, Locale("en").territories
    for code, zones in sorted(get_global("territory_zones").items()):
        known = [zone for zone in zones if zone in available_timezones()]
        if len(code) != 2 or code == "ZZ" or not known or code not in english:
            continue
        clocks = {(_offset(zone, 1), _offset(zone, 7)) for zone in known}
        zone = MEANT.get(code) or (known[0] if len(clocks) == 1 else None)
        names = [italian[code], english[code]]
        names += [n.partition("(")[0].strip() for n in names if "(" in n]
        if zone is not None:
            book.add(zone, *names, label=True)
            continue
        others = {"US": ["USA", "US", "America", "Stati Uniti d'America"]}.get(code, [])
        book.many.update(fold(name) for name in (*names, *others))


def _offset(zone: str, month: int) -> dt.timedelta | None:
    return dt.datetime(2026, month, 15, 12, tzinfo=ZoneInfo(zone)).utcoffset()


def example_towns(book: Book) -> None:
    italian, english = Locale("it").time_zones, Locale("en").time_zones
    aliases = get_global("zone_aliases")
    for zone in sorted(available_timezones()):
        canonical = aliases.get(zone, zone)
        if "/" not in zone or zone.startswith(SKIPPED):
            continue
        plain = zone.rsplit("/", 1)[1].replace("_", " ")
        own = plain if canonical != zone else None
        it = own or italian.get(canonical, {}).get("city") or plain
        en = own or english.get(canonical, {}).get("city") or plain
        words = {*it.replace(" ", "_").split("_"), it.replace(" ", "_"), en, *en.split()}
        article = it.startswith(("Il ", "Lo ", "L’", "L'", "Le "))
        label = bool(words & set(ISLANDS.split())) or article
        book.add(zone, it, en, plain, label=label)


def main() -> None:
    book = Book()
    by_hand(book, TOWNS, label=False)
    example_towns(book)
    countries(book)
    by_hand(book, LABELS, label=True)
    many = sorted(book.many - set(book.names))
    data = {"places": book.places, "names": book.names, "many": many}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    # A line per place and per few names keeps differences readable.
    OUT.write_text(text.replace("],[", "],\n[").replace("},", "},\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
