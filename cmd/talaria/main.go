// Command talaria runs thousands of LLM-agent episodes against task datasets
// and records every trajectory, token, cost and reward to Parquet.
package main

import (
	"context"
	"os"
)

func main() {
	keepRunningWithoutReaders()
	os.Exit(execute(context.Background(), processStdio()))
}
