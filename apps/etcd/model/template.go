package model

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/governor-dev/governor/apps/etcd"
	"github.com/governor-dev/governor/lifecycle"
	"github.com/governor-dev/governor/lifecycle/sim"
)

// NoAccount is the name of a service account that does not exist.
const NoAccount = "none"

// refusePods is an admission webhook that rejects pods for a while. Those that run stay. It does not
// meet a container of others that fails: the claim of a member that waits for its next pod with such
// a container may be deleted meanwhile, and a person has to help it.
func (m *Model) refusePods(_ string, rng *rand.Rand) string {
	for _, name := range keys(m.tampered) {
		if m.tampered[name].sidecar {
			return ""
		}
	}
	for _, name := range keys(m.pods) {
		if m.pods[name].sidecar {
			return ""
		}
	}
	m.refusing = 1 + rng.IntN(60)
	return fmt.Sprintf("the API server rejects new pods for %d ticks", m.refusing)
}

// rejection is the API server's error for a pod of the member's StatefulSet; empty if it would
// accept the pod.
func (m *Model) rejection(name string) string {
	if _, ok := m.sets[name]; !ok {
		return ""
	}
	return m.rejects(m.accounts[name])
}

func (m *Model) rejects(account string) string {
	switch {
	case m.refusing > 0:
		return "admission webhook denied the request"
	case account == NoAccount:
		return fmt.Sprintf("serviceaccount %q not found", account)
	}
	return ""
}

// tryTemplate answers a dry run as the driver makes it.
func (m *Model) tryTemplate(seen etcd.World) lifecycle.TemplateVerdict {
	if m.want == nil {
		return lifecycle.TemplateVerdict{}
	}
	s, ok := etcd.NextTemplate(m.want, seen)
	if !ok {
		return lifecycle.TemplateVerdict{}
	}
	return lifecycle.TemplateVerdict{Template: etcd.TemplateOf(s), Refusal: m.rejects(m.want.Spec.Pod.ServiceAccountName)}
}

// missing reports whether no registry has the image of the version.
func missing(version string) bool { return strings.HasSuffix(version, ".99") }

func (m *Model) actOnTrial(s lifecycle.Step, fx *sim.Effects) error {
	if s.Name == etcd.DeleteTrial {
		return fx.Do("delete the trial pod", func() error { m.trial = etcd.Trial{}; return nil })
	}
	return fx.Do("create the trial pod", func() error {
		m.trial = etcd.Trial{Template: etcd.TemplateOf(s), Since: m.clock}
		if m.refusing > 0 {
			m.trial.Unknown = "the API server rejects it"
		}
		m.tries = s.Args[etcd.ArgVersion]
		return nil
	})
}

// tickTrial lets the trial pod pull its image, lose its node, or be deleted by a user.
func (m *Model) tickTrial(rng *rand.Rand) {
	if t := &m.trial; t.Template == "" || t.Passed || t.Unknown != "" {
		return
	}
	switch n := rng.IntN(32); {
	case n == 0:
		m.trial = etcd.Trial{}
	case n == 1 && !missing(m.tries):
		m.trial.Unknown = "its node is lost"
	case n > 16 && missing(m.tries):
		m.trial.Problem, m.trial.Detail = lifecycle.PodProblemImagePullBackOff, "image not found"
	case n > 16:
		m.trial.Passed = true
	}
}
