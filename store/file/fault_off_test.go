//go:build !faultinject

package file

func faultChild(string) int { panic("internal error: not in this build") }
