//go:build !faultinject

package triage

// stopAfter is never in ordinary builds.
func stopAfter() int { return 0 }
