// Generate writes commands.txt, the compact form of the azure-cli command tree.
package main

import (
	"fmt"
	"os"

	"ghostbot/safeexec/policy/azure"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: generate LIST.jsonl commands.txt")
	}
	in, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer in.Close()
	text, err := azure.Compact(in)
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], []byte(text), 0o644)
}
