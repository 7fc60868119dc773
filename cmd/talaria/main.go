// Command talaria runs thousands of LLM-agent episodes against task datasets
// and records every trajectory, token, cost and reward to Parquet.
package main

import (
	"context"
	"os"
	"runtime"

	"github.com/talaria-run/talaria/env/sandbox/supervisor"
)

func main() {
	if supervisor.Main(os.Args) { // first: every sandbox waits for it
		return
	}
	reserve := reserveHeap(os.Getenv)
	keepRunningWithoutReaders()
	code := execute(context.Background(), processStdio())
	runtime.KeepAlive(reserve)
	os.Exit(code)
}
