// Package window fits conversations into the context windows of models.
package window
