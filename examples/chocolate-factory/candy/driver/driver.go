// Package driver talks to chocolate machines by HTTP.
package driver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/governor-dev/governor/kube"
	"github.com/governor-dev/governor/lifecycle"

	v1 "awesome.corp.com/chocolate-factory/api/v1"
	"awesome.corp.com/chocolate-factory/candy"
	"awesome.corp.com/chocolate-factory/machine"
)

// Driver is the contact with the machines.
type Driver struct {
	address func(*v1.Candy) string
	client  *http.Client
}

// New returns a driver that finds each machine by its Service.
func New(kube.Access) lifecycle.Driver[*v1.Candy, candy.World] { return At(ByService) }

// At returns a driver that finds the machine of a candy at the address.
func At(address func(*v1.Candy) string) Driver {
	return Driver{address: address, client: &http.Client{Timeout: patience}}
}

// ByService is the address of the machine's Service.
func ByService(c *v1.Candy) string {
	return fmt.Sprintf("http://%s.%s.svc:8080", c.Spec.Machine, c.Namespace)
}

// Observe implements lifecycle.Driver. A machine that does not answer is a part of the world.
func (d Driver) Observe(ctx context.Context, c *v1.Candy) (candy.World, error) {
	job := &machine.Job{}
	switch err := d.call(ctx, http.MethodGet, d.job(c), nil, job); {
	case errors.Is(err, errSilent):
		return candy.World{}, nil
	case errors.Is(err, errUnknown):
		return candy.World{Answers: true}, nil
	case err != nil:
		return candy.World{}, err
	}
	return candy.World{Answers: true, Job: job}, nil
}

// Act implements lifecycle.Driver. Bars are called by their number, so that none is taken for another.
func (d Driver) Act(ctx context.Context, c *v1.Candy, seen candy.World, s lifecycle.Step) error {
	err := d.perform(ctx, c, s)
	if errors.Is(err, errUnknown) || errors.Is(err, errConflict) {
		return &lifecycle.Deferred{Reason: err.Error()}
	}
	if err == nil {
		count(c, seen, s)
	}
	return err
}

func (d Driver) perform(ctx context.Context, c *v1.Candy, s lifecycle.Step) error {
	job := d.job(c)
	bar := job + "/bars/" + url.PathEscape(s.Target)
	switch s.Name {
	case candy.Order:
		return d.call(ctx, http.MethodPut, job, candy.OrderOf(c), nil)
	case candy.Make:
		return d.call(ctx, http.MethodPost, job+"/bars", nil, nil)
	case candy.Sense:
		args, err := lifecycle.ArgsOf[candy.SenseArgs](s)
		if err != nil {
			return err
		}
		return d.call(ctx, http.MethodPost, fmt.Sprintf("%s/senses?samples=%d", bar, args.Samples), nil, nil)
	case candy.Dispose:
		return d.call(ctx, http.MethodDelete, bar, nil, nil)
	case candy.Deliver:
		return d.call(ctx, http.MethodPost, bar+"/delivery", nil, nil)
	case candy.Rest:
		return d.call(ctx, http.MethodPost, job+"/rest", nil, nil)
	case candy.Release:
		return d.call(ctx, http.MethodDelete, job, nil, nil)
	}
	return fmt.Errorf("there is no step %q", s.Name)
}

func (d Driver) job(c *v1.Candy) string {
	return d.address(c) + "/jobs/" + url.PathEscape(string(c.UID))
}
