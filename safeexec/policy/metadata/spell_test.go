package metadata

import "fmt"

func dotted(a, b, c, d uint32) string { return fmt.Sprintf("%d.%d.%d.%d", a, b, c, d) }

// spellings writes an IPv4 address in ways that clients accept.
func spellings(v uint32) []string {
	a, b, c, d := v>>24, v>>16&255, v>>8&255, v&255
	return []string{
		fmt.Sprint(v), fmt.Sprintf("0x%x", v), fmt.Sprintf("0X%X", v), fmt.Sprintf("0%o", v),
		fmt.Sprintf("%d.%d", a, v&0xffffff), fmt.Sprintf("%d.%d.%d", a, b, v&0xffff),
		fmt.Sprintf("0x%x.0%o.%d.%d", a, b, c, d), fmt.Sprintf("0%o.0%o.0%o.0%o", a, b, c, d),
		fmt.Sprintf("::ffff:%x:%x", v>>16, v&0xffff), fmt.Sprintf("[::ffff:%s]", dotted(a, b, c, d)),
		fmt.Sprintf("64:ff9b::%x:%x", v>>16, v&0xffff), fmt.Sprintf("2002:%x:%x::", v>>16, v&0xffff),
		dotted(a, b, c, d) + ".", fmt.Sprintf("%%%02x%s", '0'+a/100, dotted(a, b, c, d)[1:]),
	}
}
