// Where states come from on a page without a server: what was computed in advance is looked up.

// A function of a state and of what is to be told: `tell` is called with all that is shown of the state.
function fromTable(data) {
  const margin = data.shifts.at(-1);
  data.side = data.picture.shape.at(-1) - 2 * margin;
  const limits = data.channels.map((_, channel) => {
    const maps = data.digits.flatMap((_, digit) => at(data.lifted, digit, 0, 0, channel));
    return maps.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  });
  return (state, tell) => {
    const place = [state.digit, state.mirror, state.down, state.right];
    const where = [...place, state.angle];
    const plane = [state.digit, state.mirror, state.angle]; // of what is kept once for all shifts
    const digit = data.digits[state.digit];
    const truth = data.classes.indexOf(digit);
    const probabilities = (net, angle) => at(data.probabilities, net, ...place, angle);
    const still = !state.mirror && !isShifted(data, state);
    tell({
      state: { ...state },
      subject: `the digit ${digit}`,
      truth,
      limits,
      picture: windowed(data, at(data.picture, ...plane), state),
      lifted: (channel, pose) => windowed(data, at(data.lifted, ...plane, channel, pose), state),
      attention: (which, head, pose) => at(data.layers[which].attention, ...where, head, pose),
      errors: data.names.map((_, net) => at(data.errors, net, ...where)[0]),
      probabilities: data.names.map((_, net) => probabilities(net, state.angle)),
      curves: data.names.map((_, net) => curveAngles(data).map((angle) => probabilities(net, angle)[truth])),
      moved: still ? data.feature_errors[state.digit][data.angles[state.angle]] : undefined,
    });
  };
}

// Of a square with a margin, what is in the picture when it is shifted.
function windowed(data, values, state) {
  const wide = Math.sqrt(values.length);
  const margin = data.shifts.at(-1);
  const [top, left] = [margin - data.shifts[state.down], margin - data.shifts[state.right]];
  const rows = Array.from({ length: wide - 2 * margin }, (_, i) => (top + i) * wide + left);
  return rows.flatMap((start) => values.slice(start, start + rows.length));
}
