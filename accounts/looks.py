"""How a name looks: names of one look are taken for each other."""

import unicodedata

# Those letters of Unicode's confusables.txt that people write names with. The rest needs no table: new names
# are ASCII, and NFKD takes accents, widths and styles apart.
FOREIGN = {
    "авекмнорстухіјѕһԁԛԝӏүѵг": "abekmhopctyxijshdqwlyvr",
    "αβγεζηικμνορτυχω": "abyeznikuvoptuxw",
    "ıłøđħ": "ilodh",
}
ALIKE = str.maketrans("".join(FOREIGN) + "01", "".join(FOREIGN.values()) + "ol")


def look_of(name: str) -> str:
    """Without case, accents, punctuation and what nobody sees; of letters that look alike it has one."""
    plain = unicodedata.normalize("NFKD", name).casefold().translate(ALIKE)
    # A small L and a capital i are one stroke.
    letters = "".join(filter(str.isalnum, plain)).replace("i", "l")
    return letters.replace("rn", "m").replace("vv", "w")
