package chaos_test

import (
	"testing"

	podsetchaos "github.com/governor-dev/governor/apps/podset/chaos"
)

func TestCatalogueIsValid(t *testing.T) {
	all := podsetchaos.Catalogue()
	if err := all.Validate(); err != nil {
		t.Error(err)
	}
	if len(all) < 20 {
		t.Errorf("only %d manipulations", len(all))
	}
}
