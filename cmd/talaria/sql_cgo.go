//go:build cgo

package main

// sqlBuiltIn tells whether this binary links DuckDB.
const sqlBuiltIn = true
