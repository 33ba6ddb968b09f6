package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
)

// play does what the scene says and shows what comes of it until it has happened.
func (s *stage) play(ctx context.Context, sc scene) error {
	fmt.Printf("\n%s\n", sc.title)
	if sc.shows != "" {
		fmt.Printf("  (%s)\n", sc.shows)
	}
	before := s.look(ctx)
	if err := each(ctx, sc.commands, before); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	start := time.Now()
	s.screen.begin(before)
	for {
		v := s.look(ctx)
		s.screen.show(v, time.Since(start))
		if sc.until(before, v) {
			fmt.Printf("  done in %.1f s\n", time.Since(start).Seconds())
			return each(ctx, sc.afterwards, before)
		}
		if err := s.await(ctx); err != nil {
			return fmt.Errorf("%q did not happen within %s: %s", sc.title, patience, story(v))
		}
	}
}

func each(ctx context.Context, commands []string, before view) error {
	for _, command := range commands {
		if err := showAndRun(ctx, victims(command, before)); err != nil {
			return err
		}
	}
	return nil
}

// await returns when something has changed, and every second on a terminal, so that the clock runs.
func (s *stage) await(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.changed:
	case <-s.screen.tick():
	}
	return nil
}

// victims puts the member that leads into the command.
func victims(command string, v view) string {
	return strings.ReplaceAll(command, "LEADER", v.object.Status.Leader)
}

// story is what the operator says about the object.
func story(v view) string {
	ready := apimeta.FindStatusCondition(v.object.Status.Conditions, "Ready")
	if ready == nil {
		return "the operator has said nothing about it; see kubectl -n governor-system logs deployment/governor"
	}
	return ready.Reason + ": " + ready.Message
}
