package etcd

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/governor-dev/governor/lifecycle"
)

// Newest is the version of a cluster that declares none: the newest release that the operator is
// tested with as a default.
const Newest = "3.6.16"

// version is a release of etcd.
type version struct{ major, minor, patch int }

// newest is the newest known patch of each minor release; "3.6" stands for it.
var newest = map[int]int{2: 32, 3: 25, 4: 23, 5: 35, 6: 16, 7: 3}

// last is the newest known minor release.
const last = 7

// Features and the minor releases that introduce them.
const (
	leaderMoves  = 3 // CHANGELOG-3.3: MoveLeader
	metricsPort  = 3 // CHANGELOG-3.3: --listen-metrics-urls
	hasLearners  = 4 // CHANGELOG-3.4: learners
	jsonLogs     = 4 // CHANGELOG-3.4: --logger=zap, the default from 3.5
	corruptCheck = 5 // CHANGELOG-3.3 has it experimental; sound from 3.5
	skipsNames   = 5 // etcdmain: --experimental-peer-skip-client-san-verification
	v3Health     = 5 // server/embed: /health asks with the present API
	featureGates = 6 // CHANGELOG-3.6: --feature-gates instead of --experimental-*
)

// minSourcePatch is the first patch of a minor release that may be upgraded to the next one:
// before 3.5.26 a promoted member may be a learner again in 3.6 (etcd-io/etcd issues 19557
// and 20793). The upgrade guide of 3.7 requires 3.6.11: a cluster of both releases may fail
// with an earlier patch (etcd.io/docs/v3.7/upgrades/upgrade_3_7).
var minSourcePatch = map[int]int{5: 26, 6: 11}

// minTargetPatch is the first patch of a minor release that may be upgraded to: 3.5.0 to 3.5.2
// lose consistency after a crash (etcd-io/etcd issues 13514 and 13766).
var minTargetPatch = map[int]int{5: 3}

// parse reads "3.6.16", "v3.6.16" or "3.6", whose patch is the newest known.
func parse(s string) (version, error) {
	fields := strings.Split(strings.TrimPrefix(s, "v"), ".")
	numbers := make([]int, 3)
	if len(fields) < 2 || len(fields) > 3 {
		return version{}, fmt.Errorf("version %q is not of the form 3.6.16 or 3.6", s)
	}
	for i, f := range fields {
		n, err := strconv.Atoi(f)
		if err != nil || n < 0 {
			return version{}, fmt.Errorf("version %q is not of the form 3.6.16 or 3.6", s)
		}
		numbers[i] = n
	}
	v := version{numbers[0], numbers[1], numbers[2]}
	if _, known := newest[v.minor]; v.major != 3 || !known {
		return version{}, fmt.Errorf("version %q is not known to this operator, which runs etcd 3.2 to 3.%d", s, last)
	}
	if len(fields) == 2 {
		v.patch = newest[v.minor]
	}
	return v, nil
}

func (v version) String() string {
	if v == (version{}) {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", v.major, v.minor, v.patch)
}

func (v version) can(since int) bool { return v.minor >= since }

func compare(a, b version) int {
	return cmp.Or(cmp.Compare(a.major, b.major), cmp.Compare(a.minor, b.minor), cmp.Compare(a.patch, b.patch))
}

// nextVersion is the next version of an upgrade path: one minor release at a time, each left
// only from a sound patch (etcd.io/docs, upgrades). A downgrade is possible only within a minor
// release.
func nextVersion(from, to version) version {
	switch need := minSourcePatch[from.minor]; {
	case from.minor >= to.minor:
		return to
	case from.patch < need:
		return version{from.major, from.minor, max(newest[from.minor], need)}
	case from.minor+1 == to.minor:
		return to
	}
	minor := from.minor + 1
	return version{from.major, minor, newest[minor]}
}

// markIrreversible marks the step with which the last member leaves a minor release: etcd then
// writes the newer format, and cannot be downgraded.
func markIrreversible(want desired, seen World, m Member, to version, s lifecycle.Step) lifecycle.Step {
	to = taggedVersion(want.Spec.Image, to)
	older := func(m Member) bool {
		v, err := parse(ran(want.EtcdCluster, m))
		return err == nil && ours(m) && (listed(m) || !seen.Listed) && v.minor < to.minor
	}
	if _, others := seen.find(func(o Member) bool { return o.Name != m.Name && older(o) }); others || !older(m) {
		return s
	}
	s.Message += fmt.Sprintf(" After this step the whole cluster runs 3.%d and cannot be downgraded.", to.minor)
	return class(s, lifecycle.ClassIrreversible)
}

// taggedVersion is the newer of the version and the tag of the image, as far as the tag is a
// version: an image of the user's own may have a newer etcd than spec.version says.
func taggedVersion(image string, v version) version {
	_, tag, _ := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	tag, _, _ = strings.Cut(tag, "@")
	if tagged, err := parse(strings.TrimPrefix(tag, "v")); err == nil && compare(tagged, v) > 0 {
		return tagged
	}
	return v
}

// refusal is the reason why one version cannot follow another; empty if it can.
func refusal(from, to version) string {
	switch {
	case from == (version{}) || from == to:
		return ""
	case to.minor < from.minor:
		return fmt.Sprintf("etcd %s cannot be downgraded to %s: its data has the newer format. "+
			"Set spec.version to 3.%d or newer, or restore a backup into a new cluster", from, to, from.minor)
	case to.minor != from.minor && to.patch < minTargetPatch[to.minor]:
		return fmt.Sprintf("etcd %s can lose data after a crash. Set spec.version to 3.%d.%d or newer", to, to.minor, minTargetPatch[to.minor])
	}
	return ""
}
