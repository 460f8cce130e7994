package options

import "testing"

// TestNumbers: digits are decimal whatever stands in front of them, and no other base
// is read.
func TestNumbers(t *testing.T) {
	for _, tt := range []struct {
		in    string
		whole int // -1: refused
		num   float64
	}{
		{"8", 8, 8}, {"010", 10, 10}, {"0", 0, 0}, {"00", 0, 0}, {"+7", 7, 7}, {"099", 99, 99},
		{"1.5", -1, 1.5}, {"1e3", -1, 1000}, {"0.25", -1, 0.25},
		{"0x10", -1, -1}, {"0X10", -1, -1}, {"0b1", -1, -1}, {"0o17", -1, -1}, {"1_000", -1, -1}, {"0x1p4", -1, -1}, {"0x_1p4", -1, -1},
		{"", -1, -1}, {" 8", -1, -1}, {"8 ", -1, -1}, {"ten", -1, -1}, {"\u0668", -1, -1}, {"99999999999999999999", -1, 1e20},
	} {
		w, n := Whole(-1), Number(-1)
		if err := w.Set(tt.in); int(w) != tt.whole || (err == nil) != (tt.whole >= 0) {
			t.Errorf("Whole %q: %d, %v, want %d", tt.in, w, err, tt.whole)
		}
		if err := n.Set(tt.in); float64(n) != tt.num || (err == nil) != (tt.num >= 0) {
			t.Errorf("Number %q: %g, %v, want %g", tt.in, n, err, tt.num)
		}
	}
	w := Whole(3)
	if w.String() != "3" || w.Set("-3") != nil || w.String() != "-3" {
		t.Errorf("%s", &w)
	}
	n := Number(0.5)
	if n.String() != "0.5" {
		t.Errorf("%s", &n)
	}
}
