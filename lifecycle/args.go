package lifecycle

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// WithArgs returns the step with the arguments, a struct as in [StepType.Args]. It panics if that is
// not such a struct.
func (s Step) WithArgs(args any) Step {
	encoded, err := encodeArgs(args)
	if err != nil {
		panic(err) // a mistake of the program, whatever the values are
	}
	s.Args = encoded
	return s
}

// ArgsOf returns the arguments of the step. An argument that is missing, unknown or of another type
// is an error, and never a zero value.
func ArgsOf[A any](s Step) (args A, err error) {
	return args, decodeArgs(s.Args, reflect.ValueOf(&args).Elem())
}

// argument is a field of a struct of arguments.
type argument struct {
	key      string
	index    []int
	optional bool
}

// arguments of each type of struct, as []argument: a simulation makes millions of steps.
var arguments sync.Map

func argumentsOf(t reflect.Type) ([]argument, error) {
	if known, ok := arguments.Load(t); ok {
		return known.([]argument), nil
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%s cannot be the arguments of a step: it is no struct", t)
	}
	var all []argument
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue
		}
		key, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if _, err := argumentText(reflect.Zero(f.Type)); err != nil || key == "" || !f.IsExported() {
			return nil, fmt.Errorf("%s cannot be the arguments of a step: the field %s needs a name for JSON and a type that is text", t, f.Name)
		}
		all = append(all, argument{key, f.Index, options == "omitempty"})
	}
	arguments.Store(t, all)
	return all, nil
}

func encodeArgs(args any) (map[string]string, error) {
	return encodeStruct(reflect.ValueOf(args))
}

func encodeStruct(v reflect.Value) (map[string]string, error) {
	fields, err := argumentsOf(v.Type())
	if err != nil {
		return nil, err
	}
	encoded := make(map[string]string, len(fields))
	for _, a := range fields {
		f := v.FieldByIndex(a.index)
		if a.optional && f.IsZero() {
			continue
		}
		if encoded[a.key], err = argumentText(f); err != nil {
			return nil, err
		}
	}
	return encoded, nil
}

func argumentText(v reflect.Value) (string, error) {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		return string(text), err
	}
	switch {
	case v.Kind() == reflect.String:
		return v.String(), nil
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), nil
	}
	return "", fmt.Errorf("%s is no text", v.Type())
}

// decodeArgs reads the arguments into their struct. Each has one form: what is written again from the
// struct must be the same.
func decodeArgs(encoded map[string]string, into reflect.Value) error {
	fields, err := argumentsOf(into.Type())
	if err != nil {
		return err
	}
	known := 0
	for _, a := range fields {
		text, given := encoded[a.key]
		switch {
		case !given && a.optional:
			continue
		case !given:
			return fmt.Errorf("the argument %s is missing", a.key)
		}
		known++
		f := into.FieldByIndex(a.index)
		if err := readArgument(f, text); err != nil {
			return fmt.Errorf("the argument %s is %q: %w", a.key, text, err)
		}
		if again, err := argumentText(f); err != nil || again != text {
			return fmt.Errorf("the argument %s is %q, and its usual form is %q", a.key, text, again)
		}
	}
	if known < len(encoded) {
		return fmt.Errorf("some of the arguments %v are unknown", encoded)
	}
	return nil
}

func readArgument(into reflect.Value, text string) error {
	if u, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch {
	case into.Kind() == reflect.String:
		into.SetString(text)
	case into.Kind() == reflect.Bool:
		is, err := strconv.ParseBool(text)
		into.SetBool(is)
		return err
	case into.CanInt():
		n, err := strconv.ParseInt(text, 10, into.Type().Bits())
		into.SetInt(n)
		return err
	default:
		return errors.New("it is no text")
	}
	return nil
}
