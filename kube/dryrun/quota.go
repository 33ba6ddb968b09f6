package dryrun

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// quotaMessage is the API server's message (apiserver, plugin/pkg/admission/resourcequota, checkRequest):
// "exceeded quota: NAME, requested: a=1,b=2, used: …, limited: a=1,b=2".
var quotaMessage = regexp.MustCompile(`exceeded quota: [^,]+, requested: (.*), used: .*, limited: (.*)$`)

// exceedsWholeQuota reports whether the pod alone needs more than the quota permits. It could never run.
func exceedsWholeQuota(message string) bool {
	parts := quotaMessage.FindStringSubmatch(message)
	if parts == nil {
		return false
	}
	limits := quantities(parts[2])
	for name, requested := range quantities(parts[1]) {
		if limit, ok := limits[name]; ok && requested.Cmp(limit) > 0 {
			return true
		}
	}
	return false
}

// quantities parses a=1,b=2; it leaves out what it cannot read.
func quantities(list string) map[string]resource.Quantity {
	all := map[string]resource.Quantity{}
	for pair := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(pair, "=")
		if q, err := resource.ParseQuantity(strings.TrimSpace(value)); err == nil {
			all[strings.TrimSpace(name)] = q
		}
	}
	return all
}
