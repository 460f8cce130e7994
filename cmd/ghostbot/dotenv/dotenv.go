// Package dotenv reads the file .env of the working directory into the environment.
package dotenv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/joho/godotenv"

	"ghostbot/internal/input"
)

// maxFile bounds the file.
const maxFile = 1 << 20

// Load reads .env in the working directory when it is there; variables that
// are set already win. What is wrong in it is told without its text, which the
// parser's own errors quote: there are tokens in it.
func Load() error {
	raw, err := input.Text(".env", maxFile)
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.As(err, &path):
		return fmt.Errorf(".env: %w", path.Err)
	case err != nil:
		return err // which names it
	}
	text := string(raw)
	vars, err := godotenv.Unmarshal(mentioned(text) + text)
	if err == nil {
		for k, v := range vars {
			if _, set := os.LookupEnv(k); !set {
				err = errors.Join(err, os.Setenv(k, v))
			}
		}
		if err != nil {
			return fmt.Errorf(".env: %w", err)
		}
		return nil
	}
	for i, line := range strings.Split(text, "\n") {
		if !envLine.MatchString(line) {
			return fmt.Errorf(".env: line %d is not NAME=VALUE", i+1)
		}
	}
	return fmt.Errorf(".env: a quoted value does not end (accepted: NAME=VALUE a line)")
}

// mentioned are assignments of the variables of the environment that a text uses, as
// in ${HOME}/journal.key, which the parser looks for in the text only.
func mentioned(text string) string {
	var b strings.Builder
	for _, m := range envUse.FindAllStringSubmatch(text, -1) {
		if v := os.Getenv(m[1]); v != "" && !strings.ContainsAny(v, "'\n\r") {
			fmt.Fprintf(&b, "%s='%s'\n", m[1], v)
		}
	}
	return b.String()
}

// envUse is the use of a variable in a value.
var envUse = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// envLine is a line of .env: an assignment, a comment, or nothing.
var envLine = regexp.MustCompile(`^\s*((export\s+)?[A-Za-z0-9_.]+\s*[=:].*|#.*)?$`)
