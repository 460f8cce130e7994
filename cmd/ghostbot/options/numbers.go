package options

import (
	"errors"
	"strconv"
	"strings"
)

// Whole is a whole number of a flag or a variable, in decimal digits: 010 is ten. What
// package flag and envconfig read by themselves may be in other bases, where 010 is eight.
// Addresses of int fields convert to it.
type Whole int

// Number is [Whole] with a fraction.
type Number float64

// Errors whose text is what is accepted; [Explain] adds flag and value.
var (
	errWhole  = errors.New("(accepted: " + Accepted("options.Whole") + ")")
	errNumber = errors.New("(accepted: " + Accepted("options.Number") + ")")
)

// Accepted says what a variable of a type may be, by the name of the type.
func Accepted(typeName string) string {
	switch typeName {
	case "bool":
		return "true false"
	case "options.Whole":
		return "a whole number, in decimal digits"
	case "options.Number":
		return "a number, in decimal digits"
	}
	return "a duration such as 90s, 5m or 1h30m"
}

// String implements [flag.Value].
func (w *Whole) String() string { return strconv.Itoa(int(*w)) }

// Set implements [flag.Value], and the setter of envconfig.
func (w *Whole) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return errWhole
	}
	*w = Whole(n)
	return nil
}

// String implements [flag.Value].
func (n *Number) String() string { return strconv.FormatFloat(float64(*n), 'g', -1, 64) }

// Set implements [flag.Value], and the setter of envconfig.
func (n *Number) Set(s string) error {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.ContainsAny(s, "xX_") {
		return errNumber
	}
	*n = Number(f)
	return nil
}
