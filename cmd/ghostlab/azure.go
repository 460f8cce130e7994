package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	azuresim "ghostbot/internal/sim/azure"
	"ghostbot/internal/sim/azure/cloud"
	"ghostbot/internal/sim/azure/lab"
)

// defaultAzureAddr is where the local Azure listens unless told otherwise.
const defaultAzureAddr = "127.0.0.1:8486"

// azureVerb runs an Azure on loopback, and prints, as shell assignments, what az and
// a bot need to reach it.
func azureVerb(ctx context.Context, args []string, out, log io.Writer) error {
	fs := flag.NewFlagSet("azure", flag.ContinueOnError)
	addr := fs.String("addr", defaultAzureAddr, "")
	seedFile := fs.String("seed", "", "")
	speed := decimal(fs, "speed", 1.0)
	if err := parse(fs, args, out); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(*addr)
	switch {
	case err != nil || !loopback(host):
		return fmt.Errorf("%w: --addr %q: want a loopback HOST:PORT; who reaches it is signed in", errUsage, *addr)
	case *speed < 0:
		return fmt.Errorf("%w: --speed %v: want 0 or more", errUsage, *speed)
	}
	opt := azuresim.Options{}
	if *seedFile != "" {
		seed, err := readSeed(*seedFile)
		if err != nil {
			return fmt.Errorf("%w: --seed: %v", errUsage, err)
		}
		opt.Seed = &seed
	}
	tools, _ := lab.Find() // outside of a clone there are none
	storage, err := storageOf(tools, &opt, log)
	if err != nil {
		return fmt.Errorf("%w: %v", errUnavailable, err)
	}
	if storage != nil {
		defer storage.Stop()
	}
	opt.Clock = cloud.NewClock(time.Now(), *speed)
	s, err := azuresim.New(opt)
	if err != nil {
		return err
	}
	err = s.Start(*addr)
	if taken(err) && !set(fs, "addr") {
		fmt.Fprintf(log, "port of %s is taken, using another\n", *addr)
		err = s.Start(net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return fmt.Errorf("%w: %v", errUnavailable, err)
	}
	defer s.Close()
	return serveAzure(ctx, s, tools, out, log)
}

func readSeed(name string) (cloud.Seed, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return cloud.Seed{}, err
	}
	return cloud.ReadSeed(b)
}

// storageOf starts the storage emulator where it is installed.
func storageOf(tools lab.Tools, opt *azuresim.Options, log io.Writer) (*lab.Storage, error) {
	if tools.Emulator == "" {
		fmt.Fprintln(log, "no storage emulator is here (scripts/azurite installs it): storage accounts cannot be reached")
		return nil, nil
	}
	s, err := lab.StartStorage(tools)
	if err != nil {
		return nil, err
	}
	with := s.Options()
	opt.Emulator, opt.Keys, opt.Authority = with.Emulator, with.Keys, with.Authority
	return s, nil
}

// serveAzure says how to reach it until the context ends.
func serveAzure(ctx context.Context, s *azuresim.Server, tools lab.Tools, out, log io.Writer) error {
	dir, err := os.MkdirTemp("", "ghostlab-azure-")
	if err != nil {
		return fmt.Errorf("making a configuration for az: %w", err)
	}
	defer os.RemoveAll(dir)
	env, err := s.Env(dir, tools.Warm)
	if err != nil {
		return err
	}
	seed := s.Cloud.Seed()
	env = append(env, "GHOST_AZ_SUBSCRIPTION="+seed.Subscriptions[0].ID)
	if len(seed.Accounts) > 0 {
		a := seed.Accounts[0]
		env = append(env, "GHOST_AZ_RESOURCE_GROUP="+a.Group, "GHOST_AZ_LOCATION="+a.Location, "GHOST_AZ_STORAGE_ACCOUNT="+a.Name)
	}
	for _, e := range env {
		fmt.Fprintln(out, "export "+e)
	}
	if tools.Az != "" {
		fmt.Fprintf(log, "az: %s\n", filepath.Join(filepath.Dir(tools.Az), "az"))
	}
	fmt.Fprintf(log, "local Azure: %s/lab/state shows what is there (Ctrl-C ends it)\n", s.URL)
	<-ctx.Done()
	for _, p := range s.Problems() {
		fmt.Fprintln(log, "problem: "+p)
	}
	return nil
}
