package main

import (
	"context"
	"fmt"

	etcdv1 "github.com/governor-dev/governor/api/etcd/v1"
)

// creation is the time from apply until all members are healthy, for one size.
type creation struct {
	Size     int      `json:"size"`
	Plain    []sample `json:"plain"`
	Governor []sample `json:"governor"`
	// Encrypted is Governor's default, with a certificate authority and certificates per
	// cluster. Plain has no TLS.
	Encrypted []sample `json:"governorTLS"`

	// The ratios divide the operator's median by the plain StatefulSet's median.
	Ratio          float64 `json:"ratio"`
	RatioReady     float64 `json:"ratioReady"`
	RatioEncrypted float64 `json:"ratioTLS"`
}

func measureCreations(ctx context.Context, s *testEnv, o options) ([]creation, error) {
	if len(o.sizes) > 0 {
		progress("warming up")
		if _, err := s.measure(ctx, governed("warm-up", 1, etcdv1.TLSModeManaged)); err != nil {
			return nil, err
		}
	}
	var all []creation
	for _, size := range o.sizes {
		c := creation{Size: size}
		for round := range o.rounds {
			progress("%d members, round %d of %d", size, round+1, o.rounds)
			if err := c.round(ctx, s, round); err != nil {
				return nil, fmt.Errorf("%d members: %w", size, err)
			}
		}
		c.compare()
		all = append(all, c)
	}
	return all, nil
}

// round measures each of the three once. The order changes with each round, so that other
// load on the machine affects all of them.
func (c *creation) round(ctx context.Context, s *testEnv, nth int) error {
	name := func(kind string) string { return fmt.Sprintf("%s-%d-%d", kind, c.Size, nth) }
	static, err := plain(name("plain"), c.Size)
	if err != nil {
		return err
	}
	subjects := []struct {
		subject *subject
		to      *[]sample
	}{
		{static, &c.Plain},
		{governed(name("open"), c.Size, etcdv1.TLSModeDisabled), &c.Governor},
		{governed(name("tls"), c.Size, etcdv1.TLSModeManaged), &c.Encrypted},
	}
	for i := range subjects {
		t := subjects[(i+nth)%len(subjects)]
		took, err := s.measure(ctx, t.subject)
		if err != nil {
			return err
		}
		progress("  %-12s healthy after %.2f s, ready after %.2f s", t.subject.name, took.Healthy, took.Ready)
		*t.to = append(*t.to, took)
	}
	return nil
}

// measure creates the cluster and removes it with its volumes.
func (s *testEnv) measure(ctx context.Context, x *subject) (sample, error) {
	took, err := s.create(ctx, x)
	if err != nil {
		return took, err
	}
	return took, s.remove(ctx, x)
}

func (c *creation) compare() {
	c.Ratio = median(c.Governor, untilHealthy) / median(c.Plain, untilHealthy)
	c.RatioReady = median(c.Governor, untilReady) / median(c.Plain, untilReady)
	c.RatioEncrypted = median(c.Encrypted, untilHealthy) / median(c.Plain, untilHealthy)
}

func untilHealthy(s sample) float64 { return s.Healthy }

func untilReady(s sample) float64 { return s.Ready }
