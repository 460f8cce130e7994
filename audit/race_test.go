//go:build race

package audit

// raceDetector says that the tests run with it: lines of 16 MiB take minutes
// then, and nothing about them is concurrent.
const raceDetector = true
