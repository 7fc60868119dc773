// Command talaria runs thousands of LLM-agent episodes against task datasets
// and records every trajectory, token, cost and reward to Parquet.
package main

import (
	"context"
	"os"

	"github.com/talaria-run/talaria/env/sandbox/supervisor"
)

func main() {
	if supervisor.Main(os.Args) { // first: every sandbox waits for it
		return
	}
	keepRunningWithoutReaders()
	os.Exit(execute(context.Background(), processStdio()))
}
