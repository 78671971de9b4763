"""The campaign against false certificates, hangs, crashes and silent changes.

A case is one attempt to break the library. It belongs to a part, such as fits or files, and
follows from its number alone: ``python bench/campaign.py --part fits --case 17`` repeats it. Cases
run in processes of their own, up to thousands in each, so that a crash or a hang of the library is
a result and not the end of the campaign. Results are lines of JSON, and a campaign goes on where an
earlier one has stopped.

=========================  ========================================================================
module                     contents
=========================  ========================================================================
``_outcome``               what a case has found, and which errors are clear ones
``_parts``                 the parts by name, and how long a case of each may take
``_fits``                  fuzzed fits, whose certificates are computed again
``_inputs``                inputs that have to be refused
``_files``                 changed model files and checkpoints
``_kills``                 processes that are killed while they fit or write
``_interrupts``            processes that get signals while they fit
``_processes``             forked and spawned processes, and threads
``_limits``                limits of memory, before and during a fit
``_deadlines``             time limits of fits
``_children``              forked processes that report what they have found
``_patience``              hangs, told from a machine that is busy with other work
``_problems``              random estimators and data
``_certificates``          certificates, computed again; ``_definitions`` has the kernels
``_automatic``             claims of automatic models, computed again
``_runner``, ``_worker``   the processes that run cases
``_record``, ``_report``   results as lines of JSON, and their table; ``_code`` tells which code ran
``_command``               the command
=========================  ========================================================================
"""
