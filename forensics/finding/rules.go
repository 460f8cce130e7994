package finding

import "ghostbot/forensics/facts"

// All applies every rule to the facts and orders what they say.
func All(f *facts.Facts) []Finding {
	return nil
}
