package view

import "unicode"

// invisible says whether a character has no width or only marks its
// neighbour: format characters, fillers, variation selectors, accents.
func invisible(r rune) bool {
	switch {
	case r >= 0x300 && r <= 0x36f, r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef, r >= 0x180b && r <= 0x180f:
		return true
	case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0, r == 0x2800, r == 0x34f:
		return true
	}
	return unicode.Is(unicode.Cf, r)
}

// lookAlikes are letters and signs that are read as the ASCII character at the
// same place of asciiTwins: Cyrillic, Greek, typographic quotes and dashes.
const (
	lookAlikes = "аеорсхукмтнвіѕјԁԝոһԛӏ" + "АЕОРСХУКМТНВІЅЈ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" + "οανρτυικε" +
		"“”„«»‘’‚" + "‐‑‒–—−⁃" + "꞉∶։˸" + "⁄∕" + "․ꓸ" + "⹀₌" + "ıɡɑℓ"
	asciiTwins = "aeopcxykmthbisjdwnhql" + "AEOPCXYKMTHBISJ" + "ABEZHIKMNOPTYX" + "oavptuike" +
		"\"\"\"\"\"'''" + "-------" + "::::" + "//" + ".." + "==" + "igal"
)

// twins is lookAlikes as a table.
var twins = twinTable()

func twinTable() map[rune]byte {
	t := map[rune]byte{}
	i := 0
	for _, r := range lookAlikes {
		t[r] = asciiTwins[i]
		i++
	}
	return t
}

// fold gives the ASCII character that r is read as, 0 when there is none.
func fold(r rune) byte {
	switch {
	case r < 0xa0:
		if r == 0x85 {
			return '\n'
		}
		return 0
	case r >= 0xff01 && r <= 0xff5e:
		return byte(r - 0xff01 + '!')
	case r == 0xa0, r == 0x1680, r >= 0x2000 && r <= 0x200a, r == 0x202f, r == 0x205f, r == 0x3000:
		return ' '
	case r == 0x2028, r == 0x2029:
		return '\n'
	case r >= 0x1d400 && r < 0x1d6a4: // mathematical letters: alphabets of 52
		n := byte((r - 0x1d400) % 52)
		if n < 26 {
			return 'A' + n
		}
		return 'a' + n - 26
	case r >= 0x1d7ce && r <= 0x1d7ff:
		return byte('0' + (r-0x1d7ce)%10)
	}
	return twins[r]
}
