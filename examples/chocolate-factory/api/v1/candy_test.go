package v1_test

import (
	"testing"

	v1 "awesome.corp.com/chocolate-factory/api/v1"
)

func TestSugar(t *testing.T) {
	for flavor, want := range map[string]int{
		"bitter": 100, "dark": 300, "milk": 500, "white": 580, "sweet": 540, "sweeeeeeet": 640, "swet": 0, "sour": 0, "": 0, "sweett": 0,
	} {
		if got := (v1.CandySpec{Flavor: flavor}).Sugar(); got != want {
			t.Errorf("%q has %d mg/g, want %d", flavor, got, want)
		}
	}
}
