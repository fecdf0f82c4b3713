-- The clock.
--   KEYS 1 any key: it says which node answers
--   {now, 'time'}
return {now, 'time'}
