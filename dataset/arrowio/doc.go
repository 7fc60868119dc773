// Package arrowio reads tables in Arrow's IPC formats, the file and the stream,
// as rows of plain values. All use of the Arrow library is here.
//
// [NewReader] takes either format from a plain stream of bytes and holds one
// record batch at a time, so a table of any length is read in the memory of its
// largest batch.
package arrowio
