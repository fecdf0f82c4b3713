-- Shared: the first day that is kept, and the day after today.
local first_kept, tomorrow = struct.unpack('c10c10', ARGV[1], 27)
