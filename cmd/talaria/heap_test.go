package main

import "testing"

func TestReserveHeap(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		want int
	}{
		{"by default", nil, heapReserve},
		{"with GOGC", map[string]string{"GOGC": "100"}, 0},
		{"with GOMEMLIMIT", map[string]string{"GOMEMLIMIT": "1GiB"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := len(reserveHeap(func(name string) string { return tt.env[name] })); got != tt.want {
				t.Errorf("got %d bytes, want %d", got, tt.want)
			}
		})
	}
}
