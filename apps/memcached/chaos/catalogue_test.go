package chaos_test

import (
	"testing"

	memcachedchaos "github.com/governor-dev/governor/apps/memcached/chaos"
)

func TestCatalogueIsValid(t *testing.T) {
	all := memcachedchaos.Catalogue()
	if err := all.Validate(); err != nil {
		t.Error(err)
	}
	if len(all) < 20 {
		t.Errorf("only %d manipulations", len(all))
	}
}
