package etcd

import "testing"

func TestNextVersionStopsWhereEtcdRequires(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want version }{
		"3.7 needs 3.6.11":                  {version{3, 6, 10}, version{3, 7, 3}, version{3, 6, newest[6]}},
		"3.6.11 suffices":                   {version{3, 6, 11}, version{3, 7, 3}, version{3, 7, 3}},
		"3.6 needs 3.5.26":                  {version{3, 5, 25}, version{3, 6, 16}, version{3, 5, newest[5]}},
		"3.5.26 suffices":                   {version{3, 5, 26}, version{3, 6, 16}, version{3, 6, 16}},
		"a patch is not a way elsewhere":    {version{3, 6, 2}, version{3, 6, 5}, version{3, 6, 5}},
		"each minor release is on the way":  {version{3, 3, 25}, version{3, 6, 16}, version{3, 4, newest[4]}},
		"the stop before 3.7 is sound, too": {version{3, 5, 35}, version{3, 7, 3}, version{3, 6, newest[6]}},
	} {
		if got := nextVersion(c.from, c.to); got != c.want {
			t.Errorf("%s: the next version from %s to %s is %s, want %s", name, c.from, c.to, got, c.want)
		}
	}
}
