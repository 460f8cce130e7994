package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
)

// build information of the binary.
type versionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// release is the version of the source tree.
const release = "0.1.0"

func versionOf() versionInfo {
	v := versionInfo{Version: release, Commit: "unknown", Go: runtime.Version()}
	if bi, ok := debug.ReadBuildInfo(); ok {
		for _, s := range bi.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
			if s.Key == "vcs.modified" && s.Value == "true" {
				v.Commit += "+changes"
			}
		}
	}
	return v
}

func versionText() string {
	v := versionOf()
	return v.Version + " " + v.Commit
}

func version(_ context.Context, c *cli, args []string) error {
	var asJSON bool
	rest, err := c.flags("version", args, func(fs *flag.FlagSet) { fs.BoolVar(&asJSON, "json", false, "print one JSON object") })
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usageError("version takes no argument, got %q", rest[0])
	}
	v := versionOf()
	if asJSON {
		return encode(c.out, v)
	}
	fmt.Fprintf(c.out, "ghostbot %s, commit %s, %s\n", v.Version, v.Commit, v.Go)
	return nil
}
