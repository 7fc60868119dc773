// Command talaria runs thousands of LLM-agent episodes against task datasets
// and records every trajectory, token, cost and reward to Parquet.
package main

func main() {}
