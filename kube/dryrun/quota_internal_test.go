package dryrun

import "testing"

// TestExceedsWholeQuota: a deleted pod frees quota, but a pod that needs more than all of it can never run.
func TestExceedsWholeQuota(t *testing.T) {
	cases := map[string]struct {
		message string
		want    bool
	}{
		"Used":    {`pods "e-0-0" is forbidden: exceeded quota: q, requested: requests.memory=1Gi, used: requests.memory=3Gi, limited: requests.memory=3Gi`, false},
		"Whole":   {`pods "e-0-0" is forbidden: exceeded quota: q, requested: requests.memory=2Gi, used: requests.memory=1Gi, limited: requests.memory=1500Mi`, true},
		"Second":  {`exceeded quota: q, requested: limits.cpu=1,requests.cpu=600m, used: limits.cpu=1,requests.cpu=0, limited: limits.cpu=2,requests.cpu=500m`, true},
		"Equal":   {`exceeded quota: q, requested: cpu=1, used: cpu=1, limited: cpu=1000m`, false},
		"Other":   {`exceeded quota: q`, false},
		"Nothing": {"", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := exceedsWholeQuota(c.message); got != c.want {
				t.Errorf("got %v for %s", got, c.message)
			}
		})
	}
}
